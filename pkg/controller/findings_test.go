// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/workload"
)

var webDeployment = apply.NewObjectRef(managers.Deployment, "shop", "web")

func refusalOf(class apply.Class) apply.Refusal {
	return apply.Refusal{Class: class, Writer: managers.Proxy, Object: webDeployment, Reason: "why"}
}

func TestEveryClassOfRefusalHasAReasonOfItsOwn(t *testing.T) {
	classes := map[string]apply.Class{}
	for _, class := range apply.Classes() {
		reason := refusalReasons[class]
		if before, taken := classes[reason]; taken || reason == "" {
			t.Errorf("%s has the reason %q, which %q has", class, reason, before)
		}
		classes[reason] = class
	}
	if len(refusalReasons) != len(classes) {
		t.Errorf("%d reasons of refusals, and %d classes", len(refusalReasons), len(classes))
	}
}

func TestRefusalsBecomeConditions(t *testing.T) {
	for class, policy := range apply.Policies() {
		t.Run(string(class), func(t *testing.T) {
			refusal := refusalOf(class)
			// What is not told of comes first, and must not hide what is.
			momentary := refusalOf(apply.ClassTransient)
			v, refused := viewOf(newServer("web")), []error{errors.New("of another kind"), &momentary, &refusal}
			if found, delays := refusals(v, refused); policy.Passes && len(found)+len(delays) > 0 {
				t.Errorf("%v and %v are told of what may be over in a moment", found, delays)
			}
			refusal.Repeated = true
			found, delays := refusals(v, refused)
			if policy.Passes {
				found, delays = delays, found
			}
			if len(found) != 1 || len(delays) > 0 {
				t.Fatalf("findings %v and %v, want one", found, delays)
			}
			want := status.Finding{
				Condition: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: refusalReasons[class], Message: found[0].Message,
			}
			if class == apply.ClassConflict || class == apply.ClassForeign {
				want.Condition = v1beta1.ConditionFieldsOwned
			}
			if diff := cmp.Diff(want, found[0]); diff != "" {
				t.Errorf("finding (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(found[0].Message, "deployment.apps/web: ") || strings.Contains(found[0].Message, "\n") {
				t.Errorf("message %q", found[0].Message)
			}
		})
	}
}

// What admission stores otherwise than sent is a refusal only where it binds pods to something else.
func TestAlteredWritesAreToldByWhatTheyBind(t *testing.T) {
	server, stdio := newServer("web"), newServer("web")
	stdio.Spec.Transport = v1beta1.TransportStdio
	const image, args = `.spec.template.spec.containers[name="toolhive"].image`, `.spec.template.spec.containers[name="toolhive"].args[0]`
	for name, test := range map[string]struct {
		server *v1beta1.MCPServer
		paths  []string
		binds  bool
	}{
		"an image":                    {server, []string{image}, false},
		"a label":                     {server, []string{".metadata.labels.toolhive"}, false},
		"a number of replicas":        {server, []string{".spec.replicas"}, false},
		"the one replica of stdio":    {stdio, []string{".spec.replicas"}, true},
		"arguments":                   {server, []string{args}, true},
		"one of two":                  {server, []string{image, args}, true},
		"a checksum":                  {server, []string{".spec.template.metadata.annotations." + v1beta1.AnnotationRunConfigChecksum}, true},
		"an annotation of the user's": {server, []string{".spec.template.metadata.annotations.team"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			altered := &apply.AlteredError{Refusal: refusalOf(apply.ClassAltered)}
			for _, path := range test.paths {
				altered.Fields = append(altered.Fields, apply.AlteredField{Path: path})
			}
			found, _ := refusals(viewOf(test.server), []error{altered})
			if len(found) != 1 || found[0].Condition != v1beta1.ConditionApplied || found[0].Reason != v1beta1.ReasonAltered ||
				(found[0].Status == metav1.ConditionFalse) != test.binds || !strings.Contains(found[0].Message, "admission") {
				t.Errorf("findings %+v", found)
			}
		})
	}
}

// What a network says of an answer that did not come, and what etcd says, is never twice the same. What is told is.
func TestDelaysAreToldInTheSameWords(t *testing.T) {
	tell := func(cause error) string {
		refusal := refusalOf(apply.ClassTransient)
		refusal.Reason, refusal.Cause, refusal.Repeated = cause.Error(), cause, true
		v, refused := viewOf(newServer("web")), []error{&refusal}
		_, delays := refusals(v, refused)
		return delays[0].Message
	}
	if one, other := tell(errors.New("read tcp 10.0.0.1:41234: connection reset")), tell(errors.New("read tcp 10.0.0.1:40321: connection reset")); one != other {
		t.Errorf("%q and %q", one, other)
	}
	if one, other := tell(etcdError("leader changed")), tell(etcdError("request timed out")); one != other {
		t.Errorf("%q and %q", one, other)
	}
}

func TestConflictsAreDescribed(t *testing.T) {
	replicas := apply.FieldConflict{Path: ".spec.replicas", Owners: []ownership.Owner{
		{Manager: "kubectl", Subresource: "scale"}, {Manager: "keda"},
	}}
	for name, test := range map[string]struct {
		fields []apply.FieldConflict
		want   string
	}{
		"one field":             {[]apply.FieldConflict{replicas}, `field manager "kubectl" with subresource "scale" owns .spec.replicas of deployment.apps/web; freehold-proxy wants`},
		"several fields":        {[]apply.FieldConflict{replicas, {Path: ".a"}, {Path: ".b"}}, `of deployment.apps/web (+2 more fields); freehold-proxy wants`},
		"an owner not seen yet": {[]apply.FieldConflict{{Path: ".a"}}, `another field manager owns .a of`},
	} {
		t.Run(name, func(t *testing.T) {
			v, refused := viewOf(newServer("web")), []error{&apply.ConflictError{Refusal: refusalOf(apply.ClassConflict), Fields: test.fields}}
			got, _ := refusals(v, refused)
			if len(got) != 1 || !strings.Contains(got[0].Message, test.want) || strings.Contains(got[0].Message, "\n") {
				t.Errorf("findings %v, want one with %q", got, test.want)
			}
			if got[0].Condition != v1beta1.ConditionFieldsOwned || got[0].Reason != "FieldManagerConflict" {
				t.Errorf("condition %s because of %s", got[0].Condition, got[0].Reason)
			}
		})
	}
}

func TestANoticeIsTrueAndAProblemFalse(t *testing.T) {
	problems := []render.Problem{
		{Condition: v1beta1.ConditionSpecValid, Reason: "A", Message: "a"},
		{Condition: v1beta1.ConditionGroupRefValidated, Reason: "B", Message: "b"},
	}
	want := []status.Finding{
		{Condition: v1beta1.ConditionSpecValid, Status: metav1.ConditionTrue, Reason: "A", Message: "a"},
		{Condition: v1beta1.ConditionGroupRefValidated, Status: metav1.ConditionTrue, Reason: "B", Message: "b"},
	}
	if diff := cmp.Diff(want, notices(problems)); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	for i := range want {
		want[i].Status = metav1.ConditionFalse
	}
	if diff := cmp.Diff(want, findings(problems, metav1.ConditionFalse)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// The way out that is printed is one that works: OnDelete cannot stand beside the settings of a rolling update, whoever owns these.
func TestLeavingIsOfferedWhereItSettlesTheConflict(t *testing.T) {
	for path, want := range map[string]bool{
		".spec.updateStrategy.rollingUpdate.partition": false, ".spec.updateStrategy.type": true, ".spec.template.spec.serviceAccount": true,
	} {
		refusal := refusalOf(apply.ClassConflict)
		refusal.Writer, refusal.Object = managers.Backend, apply.NewObjectRef(managers.StatefulSet, "shop", "web")
		conflict := &apply.ConflictError{Refusal: refusal, Fields: []apply.FieldConflict{{Path: path, Owners: []ownership.Owner{{Manager: "kubectl-patch"}}}}}
		got, _ := refusals(&observed.Snapshot{Key: key("web"), Server: newServer("web")}, []error{conflict})
		if message := got[0].Message; strings.Contains(message, "Leave it: ") != want {
			t.Errorf("%s: leaving it is offered: %t: %s", path, !want, message)
		}
	}
}

// A field that is to go has no other value: the message says so, and so does the way to agree.
func TestAConflictAboutAFieldToRemoveSaysSo(t *testing.T) {
	const path = ".spec.template.spec.serviceAccount"
	for removed, want := range map[bool][]string{
		true:  {"freehold-backend removes it.", "Or remove the field."},
		false: {"freehold-backend wants a different value.", "Or set spec.serviceAccount of the MCPServer to the same value."},
	} {
		refusal := refusalOf(apply.ClassConflict)
		refusal.Writer, refusal.Object = managers.Backend, apply.NewObjectRef(managers.StatefulSet, "shop", "web")
		conflict := &apply.ConflictError{Refusal: refusal, Fields: []apply.FieldConflict{
			{Path: path, Owners: []ownership.Owner{{Manager: "kubectl-patch"}}, Removed: removed},
		}}
		got, _ := refusals(&observed.Snapshot{Key: key("web"), Server: newServer("web")}, []error{conflict})
		for _, text := range want {
			if !strings.Contains(got[0].Message, text) {
				t.Errorf("removed: %t: %q lacks %q", removed, got[0].Message, text)
			}
		}
	}
}

// Of the fields to remove, those of a rolling update are known to be absent from the cache; the others are not.
func TestFieldsToRemoveAreThoseThatMayBeThere(t *testing.T) {
	const account, settings = ".spec.template.spec.serviceAccount", render.RollingUpdatePath
	intent := render.Intent{Unset: []string{settings, account}}
	rolling, onDelete := &workload.StatefulSet{}, &workload.StatefulSet{}
	rolling.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
	for name, test := range map[string]struct {
		live metav1.Object
		want []string
	}{
		"a rolling update": {rolling, []string{settings, account}}, "OnDelete": {onDelete, []string{account}}, "no object": {nil, []string{settings, account}},
	} {
		if got := stillSet(intent, test.live); !slices.Equal(test.want, got) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Of several refusals, a condition reports the one about an object with another owner.
func TestAnObjectWithAnotherOwnerIsReportedFirst(t *testing.T) {
	v := viewOf(newServer("web"))
	conflict := &apply.ConflictError{
		Refusal: apply.Refusal{Class: apply.ClassConflict, Object: v.DeploymentRef()},
		Fields:  []apply.FieldConflict{{Path: ".spec.replicas", Owners: []ownership.Owner{{Manager: "kubectl"}}}},
	}
	foreign := &apply.Refusal{Class: apply.ClassForeign, Object: apply.NewObjectRef(managers.ConfigMap, "shop", "web-config"), Reason: "it is theirs"}
	for _, refused := range [][]error{{conflict, foreign}, {foreign, conflict}} {
		var o status.Observation
		observeRefusals(v, refused, &o)
		found := o.Refusals
		if len(found) != 2 || found[0].Reason != v1beta1.ReasonObjectNotOurs || found[1].Reason != v1beta1.ReasonFieldManagerConflict {
			t.Errorf("told are %v", found)
		}
	}
}
