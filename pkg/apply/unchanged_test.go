// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// At first sight, as after a restart, an intent is compared with what the manager owns.
func TestWhatIsSoAtFirstSightIsNotWritten(t *testing.T) {
	b := newBench(t, content, (*server).target)
	live := after(t, content.Name, web("a:1"))
	if out := b.sync(live, web("a:1"), 1); b.settled(out, apply.ActionNone) != live {
		t.Error("the outcome is not the object as it was given")
	}
	b.expect(0, "nothing to do")
	if b.extracts != 1 {
		t.Errorf("%d comparisons, want 1", b.extracts)
	}
	b.settled(b.sync(live, web("a:1"), 1), apply.ActionNone)
	b.expect(0, "nothing to do, again")
	if b.extracts != 1 {
		t.Errorf("%d comparisons, want none after the first", b.extracts)
	}
}

func TestADifferenceAtFirstSightIsWritten(t *testing.T) {
	for name, test := range map[string]struct {
		live func(t *testing.T) *deployment
	}{
		"another value": {func(t *testing.T) *deployment { t.Helper(); return after(t, content.Name, web("a:0")) }},
		"a field too many": {func(t *testing.T) *deployment {
			t.Helper()
			return after(t, content.Name, web("a:1").WithAnnotations(map[string]string{"old": "x"}))
		}},
		"a field too few": {func(t *testing.T) *deployment {
			t.Helper()
			less := web("a:1")
			less.Labels = nil
			return after(t, content.Name, less)
		}},
		"the same values, owned by another": {func(t *testing.T) *deployment {
			t.Helper()
			return after(t, "someone", web("a:1"))
		}},
		"the same values, written by Update": {func(t *testing.T) *deployment {
			t.Helper()
			live := after(t, content.Name, web("a:1"))
			live.ManagedFields[0].Operation = metav1.ManagedFieldsOperationUpdate
			return live
		}},
		"the same values, owned through a subresource": {func(t *testing.T) *deployment {
			t.Helper()
			live := after(t, content.Name, web("a:1"))
			live.ManagedFields[0].Subresource = "status"
			return live
		}},
		"the same values without managedFields": {func(t *testing.T) *deployment {
			t.Helper()
			live := after(t, content.Name, web("a:1"))
			live.ManagedFields = nil
			return live
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, content, (*server).target)
			now := b.settled(b.sync(test.live(t), web("a:1"), 1), apply.ActionApplied)
			b.expect(1, "a difference")
			b.settled(b.sync(now, web("a:1"), 1), apply.ActionNone)
			b.expect(0, "after it was written")
		})
	}
}

// What the API leaves out when it is zero is not sent, and not missed.
func TestZerosAreNotSent(t *testing.T) {
	zeros := func(image string) *configuration {
		want := web(image)
		want.Spec.WithPaused(false).WithMinReadySeconds(0)
		return want
	}
	b := newBench(t, content, (*server).target)
	live := b.settled(b.sync(nil, zeros("a:1"), 1), apply.ActionCreated)
	created := b.expect(1, "creation")[0]
	b.applier.Forget(webRef)
	b.settled(b.sync(live, zeros("a:1"), 1), apply.ActionNone)
	b.expect(0, "at first sight")
	b.settled(b.sync(live, zeros("a:2"), 1), apply.ActionApplied)
	changed := b.expect(1, "a change")[0]
	for _, sent := range []call{created, changed} {
		if body := string(sent.body); strings.Contains(body, "paused") || strings.Contains(body, "minReadySeconds") {
			t.Errorf("zeros were sent: %s", body)
		}
	}
}

// Values of other managers are theirs, whatever they are.
func TestForeignWritesCauseNoRequest(t *testing.T) {
	b := newBench(t, content, (*server).target)
	live := b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
	b.expect(1, "creation")
	b.extracts = 0

	live = foreign(live.DeepCopy(), "kubectl-label", `{"f:metadata":{"f:labels":{"f:team":{}}}}`)
	live.Labels["team"] = "a"
	live.ResourceVersion, live.Status.Replicas = "200", 3
	b.settled(b.sync(live, web("a:1"), 2), apply.ActionNone)
	b.expect(0, "a foreign label")
	if b.extracts != 0 {
		t.Errorf("%d comparisons, want none: neither our own entry nor what it stands for has changed", b.extracts)
	}
	live = live.DeepCopy()
	live.Generation = 5
	for range 3 {
		b.settled(b.sync(live, web("a:1"), 2), apply.ActionNone)
	}
	b.expect(0, "a foreign field of the spec")
	if b.extracts != 1 {
		t.Errorf("%d comparisons, want 1: our entry is the one that we left, and what it stands for was looked at", b.extracts)
	}
}

func TestAMemoEndsWithWhatItIsRememberedFor(t *testing.T) {
	taken := func(t *testing.T, live *deployment) *deployment {
		t.Helper()
		less := web("a:1")
		less.Labels = nil
		taken := after(t, content.Name, less)
		taken.UID, taken.Labels = live.UID, map[string]string{"app": "theirs"}
		return taken
	}
	t.Run("a change of our claim", func(t *testing.T) {
		b := newBench(t, content, (*server).target)
		live := b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
		b.expect(1, "creation")
		b.settled(b.sync(taken(t, live), web("a:1"), 1), apply.ActionApplied)
		b.expect(1, "a label that was taken")
	})
	t.Run("the loss of our claim", func(t *testing.T) {
		b := newBench(t, content, (*server).target)
		live := b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
		b.expect(1, "creation")
		without := live.DeepCopy()
		without.ManagedFields = nil
		b.settled(b.sync(without, web("a:1"), 1), apply.ActionApplied)
		b.expect(1, "an entry that was removed")
	})
	t.Run("a change of the intent, and back", func(t *testing.T) {
		b := newBench(t, content, (*server).target)
		live := b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
		live = b.settled(b.sync(live, web("a:2"), 2), apply.ActionApplied)
		live = b.settled(b.sync(live, web("a:1"), 3), apply.ActionApplied)
		b.expect(3, "three intents")
		b.settled(b.sync(live, web("a:1"), 3), apply.ActionNone)
		b.expect(0, "the last one again")
	})
	t.Run("another object of the name", func(t *testing.T) {
		b := newBench(t, content, (*server).target)
		live := b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
		b.expect(1, "creation")
		b.extracts = 0
		twin := live.DeepCopy()
		twin.UID = "another"
		b.settled(b.sync(twin, web("a:1"), 1), apply.ActionNone)
		if b.extracts != 1 {
			t.Errorf("%d comparisons, want 1: the memo is about the other one", b.extracts)
		}
		stranger := after(t, "someone", web("a:1"))
		stranger.UID = "a third"
		b.settled(b.sync(stranger, web("a:1"), 1), apply.ActionApplied)
		if uid := b.expect(1, "an object without our claim")[0].metadata(t).UID; uid != "a third" {
			t.Errorf("sent with uid %q", uid)
		}
	})
	t.Run("the end of the object", func(t *testing.T) {
		b := newBench(t, content, (*server).target)
		b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
		b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
		b.expect(2, "an object that was deleted comes back")
	})
	t.Run("Forget", func(t *testing.T) {
		b := newBench(t, content, (*server).target)
		live := b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
		b.applier.Forget(webRef)
		b.extracts = 0
		b.settled(b.sync(live, web("a:1"), 1), apply.ActionNone)
		if b.extracts != 1 {
			t.Errorf("%d comparisons, want 1: nothing is remembered", b.extracts)
		}
	})
}

// An intent that is to be confirmed is sent although nothing differs, under the same conditions as any other.
func TestConfirmationIsSent(t *testing.T) {
	b := newBench(t, content, (*server).stamping)
	live := b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
	b.expect(1, "creation")
	confirm := func() apply.Outcome {
		return do(t.Context(), b.applier, b.writer, apply.Request{
			Object:        webRef,
			Config:        web("a:1"),
			Observed:      apply.Observed{Live: live},
			Source:        apply.Source{UID: sourceUID, Generation: 2},
			Preconditions: apply.Preconditions{Confirm: true},
		})
	}
	for range 2 {
		b.settled(confirm(), apply.ActionApplied)
		got := b.expect(1, "a confirmation")[0].metadata(t)
		want := metadata{
			UID: string(liveUID), ResourceVersion: "101",
			Annotations: map[string]string{sourceAnnotation: string(sourceUID) + "/1"}, // as it is
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("metadata (-want +got):\n%s", diff)
		}
	}
	b.settled(b.sync(live, web("a:1"), 2), apply.ActionNone)
	b.expect(0, "no confirmation is asked for")

	b.refuse = answered(t, "stale-version")
	if out := confirm(); apply.ClassOf(out.Err) != apply.ClassMoved || out.Action != apply.ActionRefused {
		t.Errorf("%s with error %v, want Refused with class Moved", out.Action, out.Err)
	}
	terminating(live)
	b.sent()
	if out := confirm(); apply.ClassOf(out.Err) != apply.ClassGone {
		t.Errorf("error %v, want class Gone", out.Err)
	}
	b.expect(0, "an object that is going")
}

// Two writers of one object neither see each other's memo nor each other's fields.
func TestWritersOfOneObjectAreApart(t *testing.T) {
	b := newBench(t, content, (*server).target)
	number := newWriter(t, replicas, b.target())
	live := b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
	b.expect(1, "creation")

	two := func() *configuration {
		return appsv1ac.Deployment("web", namespace).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(2))
	}
	out := do(t.Context(), b.applier, number, apply.Request{Object: webRef, Config: two(), Observed: apply.Observed{Live: live}})
	if out.Err != nil || out.Action != apply.ActionApplied || out.Writer != replicas.Name {
		t.Fatalf("outcome %+v, want applied by %s", out, replicas.Name)
	}
	b.expect(1, "the number")
	live = live.DeepCopy()
	live.ManagedFields = append(live.ManagedFields, out.Live.GetManagedFields()...)
	live.Spec.Replicas = new(int32(2))

	b.settled(b.sync(live, web("a:1"), 1), apply.ActionNone)
	if out := do(t.Context(), b.applier, number, apply.Request{Object: webRef, Config: two(), Observed: apply.Observed{Live: live}}); out.Action != apply.ActionNone {
		t.Errorf("the number was written again")
	}
	b.expect(0, "both are as they should be")
}

// A status is written by its own entry, that of the subresource.
func TestStatusHasAnEntryOfItsOwn(t *testing.T) {
	ready := func() *configuration {
		return appsv1ac.Deployment("web", namespace).WithStatus(appsv1ac.DeploymentStatus().WithReadyReplicas(1))
	}
	build := func(s *server) target {
		to := s.target()
		to.Extract = appsv1ac.ExtractDeploymentStatus
		return to
	}
	b := newBench(t, status, build)
	live := after(t, status.Name, ready())
	live.ManagedFields[0].Subresource = "status"
	b.settled(b.sync(live, ready(), 1), apply.ActionNone)
	b.expect(0, "the status is so")
	live.ManagedFields[0].Subresource = ""
	b.settled(b.sync(live, ready(), 1), apply.ActionApplied)
	b.expect(1, "an entry of the name, but of the object itself")
}

// A refusal is known of the intent that was refused. It stands until the write would be sent again.
func TestARefusalIsKnownOfTheIntentThatWasRefused(t *testing.T) {
	b := newBench(t, content, (*server).target)
	live := after(t, content.Name, web("a:1"))
	expect := func(why, image string, want error, standing bool) {
		t.Helper()
		stands, refusal := b.applier.LastRefusal(b.writer, apply.Request{
			Object: webRef, Config: web(image), Observed: apply.Observed{Live: live}, Source: apply.Source{UID: sourceUID, Generation: 1},
		})
		if refusal != want || stands != standing { //nolint:errorlint // this very one
			t.Errorf("%s: known is %v, and whether it stands is %t; want %v, %t", why, refusal, stands, want, standing)
		}
	}
	expect("before any", "a:2", nil, false)
	b.refuse = apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", nil)
	refusal := b.sync(live, web("a:2"), 1).Err
	expect("in its wait", "a:2", refusal, true)
	expect("another intent", "a:3", nil, false)
	b.pass(apply.LongestWait)
	expect("after its wait", "a:2", refusal, false)
	b.refuse = nil
	b.settled(b.sync(live, web("a:2"), 1), apply.ActionApplied)
	expect("after a success", "a:2", nil, false)
	b.expect(2, "asking sends nothing")
}
