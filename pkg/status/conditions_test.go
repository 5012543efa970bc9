// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
)

func TestConditionsFollowFromTheSpec(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	bucket := &v1beta1.RateLimitBucket{MaxTokens: 1}
	for name, test := range map[string]struct {
		spec    func(*v1beta1.MCPServerSpec)
		shared  bool
		want    map[string][2]string // type: status, reason
		without []string
	}{
		"as little as can be": {
			want: map[string][2]string{
				v1beta1.ConditionReady:                 {string(no), "NotReady"},
				v1beta1.ConditionSpecValid:             {string(yes), "Valid"},
				v1beta1.ConditionFieldsOwned:           {string(yes), "NoConflict"},
				v1beta1.ConditionApplied:               {string(yes), "Applied"},
				v1beta1.ConditionStdioReplicaCapped:    {string(no), "StdioReplicaCapNotActive"},
				v1beta1.ConditionSessionStorageWarning: {string(no), "SessionStorageWarningNotApplicable"},
				v1beta1.ConditionRateLimitConfigValid:  {string(yes), "RateLimitNotApplicable"},
			},
			without: []string{
				v1beta1.ConditionPodTemplateValid, v1beta1.ConditionAuthzConfigValidated,
				v1beta1.ConditionAuthzPrimaryUpstreamProviderIgnored, v1beta1.ConditionGroupRefValidated,
			},
		},
		"a pod template": {
			spec: func(s *v1beta1.MCPServerSpec) { s.PodTemplateSpec = &runtime.RawExtension{Raw: []byte(`{}`)} },
			want: map[string][2]string{v1beta1.ConditionPodTemplateValid: {string(yes), "ValidPodTemplateSpec"}},
		},
		"authorization": {
			spec:    func(s *v1beta1.MCPServerSpec) { s.AuthzConfig = &v1beta1.AuthzConfigRef{} },
			want:    map[string][2]string{v1beta1.ConditionAuthzConfigValidated: {string(yes), "AuthzConfigValid"}},
			without: []string{v1beta1.ConditionAuthzPrimaryUpstreamProviderIgnored},
		},
		"several proxies with a store": {
			spec: func(s *v1beta1.MCPServerSpec) { s.Replicas = new(int32(2)) }, shared: true,
			want: map[string][2]string{v1beta1.ConditionSessionStorageWarning: {string(no), "SessionStorageConfigured"}},
		},
		"one proxy": {
			spec: func(s *v1beta1.MCPServerSpec) { s.Replicas = new(int32(1)) },
			want: map[string][2]string{v1beta1.ConditionSessionStorageWarning: {string(no), "SessionStorageWarningNotApplicable"}},
		},
		"a limit for all": {
			spec: func(s *v1beta1.MCPServerSpec) { s.RateLimiting = &v1beta1.RateLimitConfig{Shared: bucket} },
			want: map[string][2]string{v1beta1.ConditionRateLimitConfigValid: {string(yes), "RateLimitConfigValid"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			observed := status.Observation{Server: server(), SharedSessions: test.shared}
			if test.spec != nil {
				test.spec(&observed.Server.Spec)
			}
			got := status.Compute(observed, noon)
			for conditionType, want := range test.want {
				c := meta.FindStatusCondition(got.Conditions, conditionType)
				if c == nil || [2]string{string(c.Status), c.Reason} != want || c.Message == "" || c.ObservedGeneration != 3 {
					t.Errorf("condition %s is %+v, want %v", conditionType, c, want)
				}
			}
			for _, conditionType := range test.without {
				if find(got, conditionType) != nil {
					t.Errorf("condition %s is there", conditionType)
				}
			}
		})
	}
}

// The warning lasts as long as proxies are replaced, and concerns those that share a store.
func TestLostSessionsAreWarnedOfWhileProxiesAreReplaced(t *testing.T) {
	for name, test := range map[string]struct {
		shared, loses bool
		phase         rollout.Phase
		want          [2]string
	}{
		"while they are replaced": {true, true, rollout.Progressing, [2]string{"True", "SessionsNotKept"}},
		"once they are":           {true, true, rollout.Complete, [2]string{"False", "SessionStorageConfigured"}},
		"by the same":             {true, false, rollout.Progressing, [2]string{"False", "SessionStorageConfigured"}},
		"without a store":         {false, true, rollout.Progressing, [2]string{"False", "SessionStorageWarningNotApplicable"}},
	} {
		observed := status.Observation{
			Server: server(), SharedSessions: test.shared, LosesSessions: test.loses, Proxy: rollout.State{Phase: test.phase},
		}
		observed.Server.Spec.Replicas = new(int32(1))
		c := find(status.Compute(observed, noon), v1beta1.ConditionSessionStorageWarning)
		if c == nil || [2]string{string(c.Status), c.Reason} != test.want {
			t.Errorf("%s: got %+v, want %v", name, c, test.want)
		}
	}
}

func TestFindingsOverrideWhatTheSpecSays(t *testing.T) {
	const no = metav1.ConditionFalse
	notice := status.Finding{Condition: v1beta1.ConditionStdioReplicaCapped, Status: metav1.ConditionTrue, Reason: "StdioTransportCapAt1", Message: "capped"}
	for name, test := range map[string]struct {
		observed status.Observation
		want     map[string]*brief
	}{
		"a notice": {
			status.Observation{Notices: []status.Finding{notice}},
			map[string]*brief{v1beta1.ConditionStdioReplicaCapped: {metav1.ConditionTrue, "StdioTransportCapAt1", "capped"}},
		},
		"two notices of one type": {
			status.Observation{Notices: []status.Finding{notice, {Condition: notice.Condition, Status: no, Reason: "Other", Message: "other"}}},
			map[string]*brief{v1beta1.ConditionStdioReplicaCapped: {metav1.ConditionTrue, "StdioTransportCapAt1", "capped; other"}},
		},
		"more notices than there is room for": {
			status.Observation{Notices: []status.Finding{
				notice,
				{Condition: notice.Condition, Status: no, Reason: "Other", Message: "other."},
				{Condition: notice.Condition, Status: no, Reason: "Long", Message: strings.Repeat("x", status.MaxMessage)},
				notice,
			}},
			map[string]*brief{v1beta1.ConditionStdioReplicaCapped: {metav1.ConditionTrue, "StdioTransportCapAt1", "capped; other. (+2 more)"}},
		},
		"refusals of two types": {
			status.Observation{Refusals: []status.Finding{
				invalid(v1beta1.ConditionFieldsOwned, "a"), invalid(v1beta1.ConditionApplied, "b"),
				invalid(v1beta1.ConditionFieldsOwned, "c"), invalid(v1beta1.ConditionFieldsOwned, "d"),
			}},
			map[string]*brief{
				v1beta1.ConditionFieldsOwned: {no, "Bad", "a (+2 more)"},
				v1beta1.ConditionApplied:     {no, "Bad", "b"},
			},
		},
		"what cannot be rendered goes before a notice": {
			status.Observation{Notices: []status.Finding{notice}, Invalid: []status.Finding{invalid(notice.Condition, "worse")}},
			map[string]*brief{v1beta1.ConditionStdioReplicaCapped: {no, "Bad", "worse"}},
		},
		"a type that the spec says nothing of": {
			status.Observation{Invalid: []status.Finding{invalid(v1beta1.ConditionToolConfigRefValidated, "not yet")}},
			map[string]*brief{v1beta1.ConditionToolConfigRefValidated: {no, "Bad", "not yet"}},
		},
		"writes that were never tried": {
			status.Observation{Invalid: []status.Finding{invalid(v1beta1.ConditionSpecValid, "x")}},
			map[string]*brief{v1beta1.ConditionFieldsOwned: nil, v1beta1.ConditionApplied: nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.observed.Server = server()
			got := status.Compute(test.observed, noon)
			for conditionType, want := range test.want {
				if diff := cmp.Diff(want, find(got, conditionType)); diff != "" {
					t.Errorf("condition %s (-want +got):\n%s", conditionType, diff)
				}
			}
		})
	}
}

// While nothing can be rendered nothing is tried, and what is known of earlier writes stands, word for word.
func TestEarlierWritesAreRememberedWhileTheSpecIsInvalid(t *testing.T) {
	observed := status.Observation{
		Server:   server(),
		Refusals: []status.Finding{invalid(v1beta1.ConditionFieldsOwned, "theirs")},
	}
	before := status.Compute(observed, noon)
	observed.Server.Status, observed.Server.Generation = before, 4
	observed.Refusals, observed.Invalid = nil, []status.Finding{invalid(v1beta1.ConditionSpecValid, "x")}
	now := status.Compute(observed, noon.Add(time.Hour))
	for _, conditionType := range []string{v1beta1.ConditionFieldsOwned, v1beta1.ConditionApplied} {
		want := meta.FindStatusCondition(before.Conditions, conditionType)
		if diff := cmp.Diff(want, meta.FindStatusCondition(now.Conditions, conditionType)); diff != "" {
			t.Errorf("condition %s (-before +now):\n%s", conditionType, diff)
		}
	}
	if got := find(now, v1beta1.ConditionSpecValid); got == nil || got.Status != metav1.ConditionFalse {
		t.Errorf("condition SpecValid is %+v", got)
	}
}

// What is said of the writes is not that all were made while the proxy is held.
func TestAppliedTellsOfAHeldProxy(t *testing.T) {
	held := status.Finding{Condition: v1beta1.ConditionOIDCConfigRefValidated, Status: metav1.ConditionFalse, Reason: "Missing", Message: "it is missing"}
	for _, o := range []status.Observation{{}, {Held: []status.Finding{held}}} {
		o.Server = &v1beta1.MCPServer{}
		applied := meta.FindStatusCondition(status.Compute(o, time.Now()).Conditions, v1beta1.ConditionApplied)
		if applied == nil || applied.Status != metav1.ConditionTrue || strings.Contains(applied.Message, "except the proxy") != (len(o.Held) > 0) {
			t.Errorf("with %d held, Applied is %+v", len(o.Held), applied)
		}
	}
}

// A conflict does not end because the object changed just when its writer tried again.
func TestBadNewsStandUntilAllIsSettled(t *testing.T) {
	observed := status.Observation{
		Server:   server(),
		Refusals: []status.Finding{invalid(v1beta1.ConditionFieldsOwned, "theirs")},
	}
	before := status.Compute(observed, noon)
	observed.Server.Status, observed.Refusals, observed.Unsettled = before, nil, true
	now := status.Compute(observed, noon.Add(time.Hour))
	want := meta.FindStatusCondition(before.Conditions, v1beta1.ConditionFieldsOwned)
	if diff := cmp.Diff(want, meta.FindStatusCondition(now.Conditions, v1beta1.ConditionFieldsOwned)); diff != "" {
		t.Errorf("condition FieldsOwned (-before +now):\n%s", diff)
	}
	if got := find(now, v1beta1.ConditionApplied); got == nil || got.Status != metav1.ConditionTrue {
		t.Errorf("condition Applied is %+v: nothing was wrong with it", got)
	}
	observed.Server.Status, observed.Unsettled = now, false
	settled := status.Compute(observed, noon.Add(time.Hour))
	if got := find(settled, v1beta1.ConditionFieldsOwned); got == nil || got.Status != metav1.ConditionTrue {
		t.Errorf("condition FieldsOwned is %+v when all is settled", got)
	}
}

// What is told of writes stays as it is while not all of them have had an answer, and tells for which generation it holds;
// before anything is known it is Unknown. Nothing turns True then.
func TestNothingTurnsTrueWithoutAnAnswer(t *testing.T) {
	both := []string{v1beta1.ConditionFieldsOwned, v1beta1.ConditionApplied}
	observed := status.Observation{Server: server(), Unsettled: true}
	first := status.Compute(observed, noon)
	for _, conditionType := range both {
		if got := find(first, conditionType); got == nil || got.Status != metav1.ConditionUnknown {
			t.Errorf("at first %s is %+v", conditionType, got)
		}
	}
	observed.Server.Status, observed.Unsettled = first, false
	settled := status.Compute(observed, noon)
	observed.Server.Status, observed.Unsettled = settled, true
	observed.Server.Generation++
	later := status.Compute(observed, noon.Add(time.Hour))
	for _, conditionType := range both {
		want := meta.FindStatusCondition(settled.Conditions, conditionType)
		if diff := cmp.Diff(want, meta.FindStatusCondition(later.Conditions, conditionType)); want.Status != metav1.ConditionTrue || diff != "" {
			t.Errorf("%s at another generation (-before +now):\n%s", conditionType, diff)
		}
	}
	observed.Delays = []status.Finding{invalid(v1beta1.ConditionApplied, "no answer")}
	if got := find(status.Compute(observed, noon), v1beta1.ConditionApplied); got.Status != metav1.ConditionFalse {
		t.Errorf("Applied is %+v when the delay is told", got)
	}
}

// Who may not write cannot know what others own: a conflict that was told stays told.
func TestConflictStandsWhileWritesAreForbidden(t *testing.T) {
	observed := status.Observation{Server: server(), Refusals: []status.Finding{invalid(v1beta1.ConditionFieldsOwned, "theirs")}}
	observed.Server.Status = status.Compute(observed, noon)
	observed.Refusals, observed.Doubtful = []status.Finding{invalid(v1beta1.ConditionApplied, "forbidden")}, true
	forbidden := status.Compute(observed, noon)
	if got := find(forbidden, v1beta1.ConditionFieldsOwned); got.Status != metav1.ConditionFalse {
		t.Errorf("FieldsOwned is %+v", got)
	}
	observed.Server.Status, observed.Refusals, observed.Doubtful = forbidden, nil, false
	if got := find(status.Compute(observed, noon), v1beta1.ConditionFieldsOwned); got.Status != metav1.ConditionTrue {
		t.Errorf("FieldsOwned is %+v when all is written", got)
	}
}

// A status that could not be written is the same one when it is computed again later.
func TestUnreportedConditionsKeepTheirTimes(t *testing.T) {
	observed := status.Observation{Server: server(), StatefulSet: backend(1), Proxy: serving, Backend: serving}
	first := status.Compute(observed, noon)
	observed.Unreported = first.Conditions
	if diff := cmp.Diff(first, status.Compute(observed, noon.Add(time.Hour))); diff != "" {
		t.Errorf("the same, later (-first +second):\n%s", diff)
	}
	_, told, _ := status.Notice(server(), invalid(v1beta1.ConditionTakenOver, "x"), nil, noon)
	_, again, _ := status.Notice(server(), invalid(v1beta1.ConditionTakenOver, "x"), told, noon.Add(time.Hour))
	if diff := cmp.Diff(told, again); diff != "" {
		t.Errorf("a notice, later (-first +second):\n%s", diff)
	}
}

func TestTheTimeOfATransitionIsThatOfTheChange(t *testing.T) {
	at := func(s v1beta1.MCPServerStatus) time.Time {
		return meta.FindStatusCondition(s.Conditions, v1beta1.ConditionReady).LastTransitionTime.Time
	}
	observed := status.Observation{Server: server(), StatefulSet: backend(1), Proxy: serving, Backend: serving}
	look := func(now time.Time) v1beta1.MCPServerStatus {
		next := status.Compute(observed, now)
		observed.Server.Status = next
		return next
	}
	if got := at(look(noon.Add(1500 * time.Millisecond))); !got.Equal(noon.Add(time.Second)) {
		t.Errorf("the time is %s: the API keeps whole seconds, and any more would differ from what comes back", got)
	}
	if got := at(look(noon.Add(time.Hour))); !got.Equal(noon.Add(time.Second)) {
		t.Errorf("the time moved to %s without a change", got)
	}
	observed.ProxyPods = pods(pod("Failed"))
	if got := at(look(noon.Add(2 * time.Hour))); !got.Equal(noon.Add(time.Second)) {
		t.Errorf("the time moved to %s with the message alone", got)
	}
	observed.ProxyPods = pods(running())
	if got := at(look(noon.Add(3 * time.Hour))); !got.Equal(noon.Add(3 * time.Hour)) {
		t.Errorf("the time is %s, want that of the change", got)
	}
}
