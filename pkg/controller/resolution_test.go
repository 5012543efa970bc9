// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/status"
)

const mcpImage = `.spec.template.spec.containers[name="mcp"].image`

// asking is an MCPServer with requests, and with the conditions that told of them before.
func asking(take, yield string, before ...metav1.Condition) *v1beta1.MCPServer {
	server := newServer("web")
	server.Annotations = map[string]string{vocabulary.Take: take, vocabulary.Yield: yield}
	server.Status.Conditions = before
	return server
}

func TestWhatIsYieldable(t *testing.T) {
	object := func(kind, name string) apply.ObjectRef {
		for gk := range affixes {
			if gk.Kind == kind {
				return childRef(gk, "shop", name)
			}
		}
		t.Fatalf("there is no child of kind %s", kind)
		return apply.ObjectRef{}
	}
	for _, test := range []struct {
		kind, path string
		want       bool
	}{
		{"Deployment", ".spec.replicas", true},
		{"Deployment", ".metadata.labels.app", true},
		{"StatefulSet", mcpImage, true},
		{"Service", ".spec.ports[port=80,protocol=\"TCP\"]", true},
		// What tells whose the object is and from what it was written.
		{"Deployment", `.metadata.ownerReferences[uid="x"]`, false},
		{"Service", ".spec.selector", false},
		{"StatefulSet", ".spec.selector", false},
		{"Deployment", ".metadata.annotations.freehold.dev/source", false},
		{"StatefulSet", ".metadata.annotations.freehold.dev/replicas-source", false},
		{"StatefulSet", ".spec.template.metadata.annotations.toolhive.stacklok.dev/mcpserver-generation", false},
		{"Deployment", `.spec.template.spec.containers[name="toolhive"].env[name="THV_MCPSERVER_GENERATION"].value`, false},
		// What protects.
		{"ConfigMap", ".data.runconfig.json", false},
		{"Role", ".rules", false},
		{"RoleBinding", ".subjects", false},
		{"ServiceAccount", ".imagePullSecrets", false},
	} {
		if got := request.Yieldable(object(test.kind, "web"), pathOf(t, test.path)); got != test.want {
			t.Errorf("%s of a %s can be left to others: %t", test.path, test.kind, got)
		}
	}
}

// A request to yield reaches every writer, beside what the writer leaves to others by itself.
func TestYieldIsAddedToRequests(t *testing.T) {
	r := newResolution(asking("", "deployment.apps/web:.metadata.labels,.spec.selector"))
	own := apply.Request{Object: webDeployment, Yield: isReplicas}
	r.complete(&own)
	for path, want := range map[string]bool{
		".metadata.labels.a": true, ".spec.replicas": true, ".spec.paused": false, ".spec.selector": false,
	} {
		if got := own.Yield(pathOf(t, path)); got != want {
			t.Errorf("%s is left to others: %t", path, got)
		}
	}
	other := apply.Request{Object: childRef(vocabulary.StatefulSet, "shop", "web")}
	if r.complete(&other); other.Yield(pathOf(t, ".metadata.labels.a")) || other.Take != nil {
		t.Error("the request reaches an object that it does not name")
	}
	capped := apply.Request{Object: webDeployment, Take: func(ownership.Owner, fieldpath.Path) bool { return false }}
	if r.complete(&capped); capped.Yield != nil {
		t.Error("what a writer takes by itself is left to others")
	}
	r.note(apply.Outcome{Object: webDeployment, Left: fieldpath.NewSet(pathOf(t, ".metadata.labels.a"))})
	want := []status.Finding{{
		Condition: v1beta1.ConditionFieldsYielded, Status: metav1.ConditionFalse, Reason: ReasonNotYieldable,
		Message: "freehold.dev/yield .spec.selector: no field that Freehold sets and can leave to others. It can leave those of " +
			"Deployments, StatefulSets and Services, but for owner references, selectors and its own annotations",
	}}
	if diff := cmp.Diff(want, r.findings(true)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestFindingsAboutRequests(t *testing.T) {
	taken := func(r *resolution, writer string, paths ...string) {
		change := apply.ClaimChange{Cause: apply.CauseTaken}
		for _, path := range paths {
			change.Fields = append(change.Fields, ownership.Moved{Path: path, From: ownership.Owner{Manager: "helm"}})
		}
		r.note(apply.Outcome{Writer: writer, Object: webDeployment, Claims: []apply.ClaimChange{
			{Cause: apply.CauseRestored, Fields: []ownership.Moved{{Path: ".restored"}}}, change,
		}})
	}
	before := func(conditionType, message string) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: "Before", Message: message}
	}
	const spent = `freehold.dev/take=".spec": took it`
	taking := metav1.Condition{
		Type: v1beta1.ConditionFieldsTaken, Status: metav1.ConditionUnknown, Reason: ReasonTaking,
		Message: `freehold.dev/take=".spec": took .spec.b of deployment.apps/web from "helm"`,
	}
	for name, test := range map[string]struct {
		server     *v1beta1.MCPServer
		prepare    func(r *resolution)
		incomplete bool
		want       []string
	}{
		"nothing is asked for": {server: asking("", "", before(v1beta1.ConditionFieldsTaken, "x"), before(v1beta1.ConditionFieldsYielded, "y"))},
		"taken": {
			server:  asking(".spec", ""),
			prepare: func(r *resolution) { taken(r, vocabulary.Proxy, ".spec.b", ".spec.a") },
			want: []string{`FieldsTaken True Taken freehold.dev/take=".spec": took .spec.a of deployment.apps/web from "helm", ` +
				`.spec.b of deployment.apps/web from "helm"`},
		},
		"taken in part": {
			server: asking(".spec", ""), incomplete: true,
			prepare: func(r *resolution) { taken(r, vocabulary.Proxy, ".spec.b") },
			want:    []string{`FieldsTaken Unknown Taking freehold.dev/take=".spec": took .spec.b of deployment.apps/web from "helm"`},
		},
		"taken in parts": {
			server:  asking(".spec", "", taking),
			prepare: func(r *resolution) { taken(r, vocabulary.Proxy, ".spec.a") },
			want: []string{`FieldsTaken True Taken freehold.dev/take=".spec": took .spec.a of deployment.apps/web from "helm", ` +
				`.spec.b of deployment.apps/web from "helm"`},
		},
		"taken, and cut short": {
			server: asking(".spec", "", taking),
			want:   []string{`FieldsTaken True Taken freehold.dev/take=".spec": took .spec.b of deployment.apps/web from "helm"`},
		},
		"nothing to take": {
			server: asking(".spec", ""),
			want:   []string{`FieldsTaken False NothingToTake freehold.dev/take=".spec": no contested field fits; to ask again, remove the annotation first`},
		},
		"not everything could be looked at": {
			server: asking(".spec", "", before(v1beta1.ConditionFieldsTaken, "of another request")), incomplete: true,
			want: []string{"FieldsTaken True Before of another request"},
		},
		"carried out before": {
			server: asking(".spec", "", before(v1beta1.ConditionFieldsTaken, spent)),
			// What a writer takes for a reason of its own is not what was asked for.
			prepare: func(r *resolution) { taken(r, vocabulary.ProxyReplicas, ".spec.replicas") },
			want:    []string{"FieldsTaken True Before " + spent},
		},
		"another request, which begins like the one before": {
			server: asking(".spe", "", before(v1beta1.ConditionFieldsTaken, spent)),
			want:   []string{`FieldsTaken False NothingToTake freehold.dev/take=".spe": no contested field fits; to ask again, remove the annotation first`},
		},
		"yielded": {
			server: asking("", ".spec.paused , deployment.apps/web:.spec.replicas"),
			prepare: func(r *resolution) {
				r.note(apply.Outcome{
					Object: webDeployment, Left: fieldpath.NewSet(pathOf(t, ".spec.paused"), pathOf(t, ".spec.replicas")),
				})
			},
			want: []string{"FieldsYielded True Yielded left to others: .spec.paused, deployment.apps/web:.spec.replicas"},
		},
		"not yet known": {
			server: asking("", ".spec.paused", before(v1beta1.ConditionFieldsYielded, "y")), incomplete: true,
			want: []string{"FieldsYielded True Before y"},
		},
		"not yet known, and new": {server: asking("a", ".spec.paused"), incomplete: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResolution(test.server)
			if test.prepare != nil {
				test.prepare(r)
			}
			var got []string
			for _, f := range r.findings(!test.incomplete) {
				got = append(got, strings.Join([]string{f.Condition, string(f.Status), f.Reason, f.Message}, " "))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// A request that was carried out takes nothing more.
func TestSpentRequestTakesNothing(t *testing.T) {
	req := apply.Request{Object: webDeployment}
	if newResolution(asking(".spec", "")).complete(&req); req.Take == nil || !req.Take(ownership.Owner{Manager: "helm"}, pathOf(t, ".spec.replicas")) {
		t.Error("a new request takes nothing")
	}
	spent := metav1.Condition{Type: v1beta1.ConditionFieldsTaken, Message: `freehold.dev/take=".spec": took it`}
	req.Take = nil
	taking := spent
	taking.Reason = ReasonTaking
	if newResolution(asking(".spec", "", taking)).complete(&req); req.Take == nil {
		t.Error("a request that was carried out in part takes no more")
	}
	req.Take = nil
	if newResolution(asking(".spec", "", spent)).complete(&req); req.Take != nil {
		t.Error("a request that was carried out takes again")
	}
}

const (
	applyBackend = "apply StatefulSet/web freehold-backend"
	editBackend  = "edit StatefulSet/web freehold-ownership"
)

func (o *operating) backendImage() string {
	o.t.Helper()
	set, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
	return set.Spec.Template.Spec.Containers[0].Image
}

// What was taken is ours again; it is taken once, and who takes it back meets no resistance but the conflict.
func TestTakeAnnotation(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		seize(t, o, "evil")
		o.rest()
		o.took()
		o.events.heard()

		o.annotate("web", vocabulary.Take, "statefulset.apps/web:"+mcpImage)
		if got := o.toChildren(); !slices.Equal(got, []string{editBackend, applyBackend}) {
			t.Errorf("requests %q", got)
		}
		if got := o.backendImage(); got != "example.com/web" {
			t.Errorf("image %s, want ours", got)
		}
		if owners := ownersOf[*appsv1.StatefulSet](o.apiServer, "web", mcpImage); !slices.Equal(owners, []string{vocabulary.Backend}) {
			t.Errorf("owners %q", owners)
		}
		if status, reason, message := o.condition("web", v1beta1.ConditionFieldsTaken); status != metav1.ConditionTrue || reason != ReasonTaken || !strings.Contains(message, `from "helm"`) {
			t.Errorf("FieldsTaken is %s because of %s: %s", status, reason, message)
		}
		if status, _, _ := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s after it was taken", status)
		}
		if told := o.events.heard(); len(told) != 1 || !strings.Contains(told[0], " Normal FieldsTaken Apply: ") {
			t.Errorf("events %q, want one about what was taken", told)
		}

		seize(t, o, "evil")
		o.rest()
		if got := o.toChildren(); !slices.Equal(got, []string{applyBackend}) || o.backendImage() != "evil" {
			t.Errorf("requests %q and image %s after it was seized again", got, o.backendImage())
		}
		o.annotate("web", vocabulary.Take, "")
		o.annotate("web", vocabulary.Take, "helm")
		if got := o.backendImage(); got != "example.com/web" {
			t.Errorf("image %s after it was asked for again", got)
		}
		o.annotate("web", vocabulary.Take, "")
		if status, _, _ := o.condition("web", v1beta1.ConditionFieldsTaken); status != "" {
			t.Errorf("FieldsTaken is %s without a request", status)
		}
	})
}

// A write that loses a race between two that take something does not end the request: the rest is taken too.
func TestTakeThatLosesARace(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		proxy := appsv1ac.Deployment("web", "shop").WithSpec(appsv1ac.DeploymentSpec().WithTemplate(corev1ac.PodTemplateSpec().
			WithSpec(corev1ac.PodSpec().WithContainers(corev1ac.Container().WithName("toolhive").WithImage("evil")))))
		force := metav1.ApplyOptions{FieldManager: "helm", Force: true}
		if _, err := o.core.AppsV1().Deployments("shop").Apply(t.Context(), proxy, force); err != nil {
			t.Fatal(err)
		}
		seize(t, o, "evil")
		o.rest()

		var races atomic.Int32
		o.before = func(w write) error {
			if w.kind == "Deployment" && w.verb == "edit" && races.Add(1) == 1 {
				return apierrors.NewConflict(schema.GroupResource{}, w.name, errors.New("the object has been modified"))
			}
			return nil
		}
		o.annotate("web", vocabulary.Take, "helm")
		o.rest()
		if races.Load() != 2 {
			t.Errorf("claims on the Deployment were edited %d times, want twice", races.Load())
		}
		deployment, _ := get[*appsv1.Deployment](o.apiServer, "web")
		if image := deployment.Spec.Template.Spec.Containers[0].Image; image == "evil" || o.backendImage() == "evil" {
			t.Errorf("images %s and %s, want ours", image, o.backendImage())
		}
		status, reason, message := o.condition("web", v1beta1.ConditionFieldsTaken)
		if status != metav1.ConditionTrue || reason != ReasonTaken ||
			!strings.Contains(message, " of deployment.apps/web from ") || !strings.Contains(message, " of statefulset.apps/web from ") {
			t.Errorf("FieldsTaken is %s because of %s: %s", status, reason, message)
		}
	})
}

// What is left to others stays as it is, costs nothing, and is ours again when it is not left any more.
func TestYieldAnnotation(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.annotate("web", vocabulary.Yield, mcpImage)
		if got := o.toChildren(); !slices.Equal(got, []string{editBackend}) {
			t.Errorf("requests %q", got)
		}
		if status, reason, _ := o.condition("web", v1beta1.ConditionFieldsYielded); status != metav1.ConditionTrue || reason != ReasonYielded {
			t.Errorf("FieldsYielded is %s because of %s", status, reason)
		}
		change(o.apiServer, "web", func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "theirs" })
		<-time.After(time.Hour)
		if got := o.toChildren(); len(got) != 0 || o.backendImage() != "theirs" {
			t.Errorf("requests %q and image %s", got, o.backendImage())
		}
		if status, _, _ := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s of what is left to others", status)
		}
		o.annotate("web", vocabulary.Yield, "")
		if status, _, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionFalse || !strings.Contains(message, `"somebody"`) {
			t.Errorf("FieldsOwned is %s: %s", status, message)
		}
	})
}
