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
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/status"
)

const mcpImage = `.spec.template.spec.containers[name="mcp"].image`

// asking is an MCPServer with requests, and with the conditions that told of them before.
func asking(take, yield string, before ...metav1.Condition) *v1beta1.MCPServer {
	server := newServer("web")
	server.Annotations = map[string]string{v1beta1.AnnotationTake: take, v1beta1.AnnotationYield: yield}
	server.Status.Conditions = before
	return server
}

func TestWhatIdentifiesOrProtectsIsNotYieldable(t *testing.T) {
	object := func(kind, name string) apply.ObjectRef {
		for _, gk := range inventory.Kinds() {
			if gk.Kind == kind {
				return apply.NewObjectRef(gk, "shop", name)
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
		{"Deployment", ".metadata.annotations.freehold.dev/references", false},
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
	r := newResolution(asking("", "deployment.apps/web:.metadata.labels,.spec.selector"), &serverState{})
	own := apply.Request{Object: webDeployment, Ownership: apply.Ownership{Yield: render.IsReplicas}}
	r.complete(&own)
	for path, want := range map[string]bool{
		".metadata.labels.a": true, ".spec.replicas": true, ".spec.paused": false, ".spec.selector": false,
	} {
		if got := own.Yield(pathOf(t, path)); got != want {
			t.Errorf("%s is left to others: %t", path, got)
		}
	}
	other := apply.Request{Object: apply.NewObjectRef(managers.StatefulSet, "shop", "web")}
	if r.complete(&other); other.Yield(pathOf(t, ".metadata.labels.a")) || other.Take != nil {
		t.Error("the request reaches an object that it does not name")
	}
	capped := apply.Request{Object: webDeployment, Ownership: apply.Ownership{Take: func(ownership.Owner, fieldpath.Path) bool { return false }}}
	if r.complete(&capped); capped.Yield != nil {
		t.Error("what a writer takes by itself is left to others")
	}
	r.note(apply.Outcome{Object: webDeployment, Left: fieldpath.NewSet(pathOf(t, ".metadata.labels.a"))})
	want := []status.Finding{{
		Condition: v1beta1.ConditionFieldsYielded, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonNotYieldable,
		Message: `freehold.dev/yield="deployment.apps/web:.metadata.labels,.spec.selector": .spec.selector: ` +
			"no field that Freehold sets and can leave to others. It can leave those of " +
			"Deployments, StatefulSets and Services, but for owner references, selectors, the label toolhive, its own annotations, and what makes the " +
			"proxy read its RunConfig",
	}}
	if diff := cmp.Diff(want, r.findings(true, nil, false)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// recorded is an MCPServer with a request to take for which something is written down, in the words of took.
func recorded(take, took string, from []ownership.Owner, before ...metav1.Condition) *v1beta1.MCPServer {
	server := asking(take, "", before...)
	record := request.Record{Request: request.Digest(take), Took: took}
	for _, owner := range from {
		record.Add(request.ClaimID(webDeployment, owner))
	}
	server.Annotations[v1beta1.AnnotationTakeRecord] = record.String()
	return server
}

func TestEachRequestHasItsAnswer(t *testing.T) {
	before := func(conditionType, message string) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: "Before", Message: message}
	}
	const (
		words  = `.spec.b of deployment.apps/web from "helm"`
		taken  = `FieldsTaken True Taken freehold.dev/take=".spec": took ` + words
		taking = `FieldsTaken Unknown Taking freehold.dev/take=".spec": taking ` + words
		lost   = "fields were claimed again before they could be taken, and stay as they are; to ask again, put a comma in front of " +
			"the annotation's value. The request was to take " + words
		missed  = `FieldsTaken False ClaimedAgain freehold.dev/take=".spec": ` + lost
		nothing = `no contested field fits; to ask again, put a comma in front of the annotation's value`
	)
	helm := ownership.Owner{Manager: "helm", Operation: metav1.ManagedFieldsOperationApply, Since: bubbleStart}
	later := helm
	later.Since = later.Since.Add(time.Second)
	curl := ownership.Owner{Manager: "curl", Operation: metav1.ManagedFieldsOperationUpdate, Since: later.Since}
	conflict := func(path string, by ownership.Owner) []*apply.ConflictError {
		return []*apply.ConflictError{{
			Refusal: apply.Refusal{Object: webDeployment}, Fields: []apply.FieldConflict{{Path: path, Owners: []ownership.Owner{by}}},
		}}
	}
	helms := []ownership.Owner{helm}
	told := metav1.Condition{
		Type: v1beta1.ConditionFieldsTaken, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonTaken, Message: `freehold.dev/take=".spec": took ` + words,
	}
	toldMissed := told
	toldMissed.Status, toldMissed.Reason, toldMissed.Message = metav1.ConditionFalse, v1beta1.ReasonClaimedAgain, `freehold.dev/take=".spec": `+lost
	for name, test := range map[string]struct {
		server                       *v1beta1.MCPServer
		left                         []string
		conflicts                    []*apply.ConflictError
		incomplete, unanswered, done bool
		// known is set when this process has written the status, and not of this request.
		known bool
		want  []string
	}{
		"nothing is asked for": {server: asking("", "", before(v1beta1.ConditionFieldsTaken, "x"), before(v1beta1.ConditionFieldsYielded, "y"))},
		"not written down yet": {
			server: asking(".spec", "", before(v1beta1.ConditionFieldsTaken, "of another request")),
			want:   []string{"FieldsTaken True Before of another request"},
		},
		"withdrawn, and not forgotten yet": {
			server: func() *v1beta1.MCPServer {
				server := recorded(".spec", words, helms, told)
				delete(server.Annotations, v1beta1.AnnotationTake)
				return server
			}(),
			want: []string{taken},
		},
		"written down":      {server: recorded(".spec", words, helms), conflicts: conflict(".spec.b", helm), want: []string{taking}},
		"without an answer": {server: recorded(".spec", words, helms), unanswered: true, want: []string{taking}},
		"taken":             {server: recorded(".spec", words, helms), want: []string{taken}},
		"taken, told, and an unrelated write fails": {server: recorded(".spec", words, helms, told), unanswered: true, want: []string{taken}},
		"claimed again":                  {server: recorded(".spec", words, helms), conflicts: conflict(".spec.b", later), want: []string{missed}},
		"claimed again by another":       {server: recorded(".spec", words, helms), conflicts: conflict(".spec.b", curl), want: []string{missed}},
		"claimed again once it was ours": {server: recorded(".spec", words, helms), done: true, conflicts: conflict(".spec.b", later), want: []string{taken}},
		"taken, told, and claimed again": {server: recorded(".spec", words, helms, told), conflicts: conflict(".spec.b", later), want: []string{taken}},
		"not taken, told, and given up":  {server: recorded(".spec", words, helms, toldMissed), want: []string{missed}},
		"not taken, told, and asked for again": {
			server: recorded(".spec", "more", helms, toldMissed), known: true, want: []string{`FieldsTaken True Taken freehold.dev/take=".spec": took more`},
		},
		"another conflict": {server: recorded(".spec", words, helms), conflicts: conflict(".metadata.labels.a", helm), want: []string{taken}},
		"nothing to take":  {server: recorded(".spec", "", nil), want: []string{`FieldsTaken False NothingToTake freehold.dev/take=".spec": ` + nothing}},
		"of another request, which begins alike": {
			server: func() *v1beta1.MCPServer {
				server := recorded(".spec", words, helms)
				server.Annotations[v1beta1.AnnotationTake] = ".spe"
				return server
			}(),
		},
		"malformed": {
			server: recorded(".spec,.a[b", words, helms),
			want: []string{`FieldsTaken False Malformed freehold.dev/take=".spec,.a[b": these entries are neither fields nor field managers: .a[b; ` +
				`took ` + words},
		},
		"yielded": {
			server: asking("", ".spec.paused , deployment.apps/web:.spec.replicas"), left: []string{".spec.paused", ".spec.replicas"},
			want: []string{`FieldsYielded True Yielded freehold.dev/yield=".spec.paused , deployment.apps/web:.spec.replicas": ` +
				`left to others: .spec.paused, deployment.apps/web:.spec.replicas`},
		},
		"not yet known": {
			server: asking("", ".spec.paused", before(v1beta1.ConditionFieldsYielded, "y")), incomplete: true,
			want: []string{"FieldsYielded True Before y"},
		},
		"not yet known, and new": {server: asking("a", ".spec.paused"), incomplete: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResolution(test.server, &serverState{})
			r.done = func(apply.ObjectRef, string) bool { return test.done }
			r.told.known = test.known
			for _, path := range test.left {
				r.note(apply.Outcome{Object: webDeployment, Left: fieldpath.NewSet(pathOf(t, path))})
			}
			var got []string
			for _, f := range r.findings(!test.incomplete, test.conflicts, test.unanswered) {
				got = append(got, strings.Join([]string{f.Condition, string(f.Status), f.Reason, f.Message}, " "))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// Ten thousand entries make a short message that says that they are not all read.
func TestTooManyEntriesAreRefused(t *testing.T) {
	many := strings.Repeat(".spec.paused,", 10000)
	r := newResolution(asking("", many), &serverState{})
	r.note(apply.Outcome{Object: webDeployment, Left: fieldpath.NewSet(pathOf(t, ".spec.paused"))})
	server := recorded(many, "what there was", nil)
	for _, f := range append(r.findings(true, nil, false), newResolution(server, &serverState{}).findings(true, nil, false)...) {
		if f.Status != metav1.ConditionFalse || f.Reason != v1beta1.ReasonTooManyEntries || len(f.Message) > status.MaxMessage {
			t.Errorf("%s is %s because of %s, with %d bytes", f.Condition, f.Status, f.Reason, len(f.Message))
		}
	}
}

// What is taken is written down before: nothing else is, and nothing that was claimed later or taken already.
func TestOnlyWhatIsWrittenDownIsTaken(t *testing.T) {
	helm := ownership.Owner{Manager: "helm", Operation: metav1.ManagedFieldsOperationApply, Since: bubbleStart}
	later, other := helm, helm
	later.Since, other.Manager = later.Since.Add(time.Second), "curl"
	take := func(server *v1beta1.MCPServer, done bool) apply.Request {
		r := newResolution(server, &serverState{})
		r.done = func(apply.ObjectRef, string) bool { return done }
		req := apply.Request{Object: webDeployment}
		r.complete(&req)
		return req
	}
	if req := take(asking(".spec", ""), false); req.Take != nil {
		t.Error("something is taken before it is written down")
	}
	replicas := pathOf(t, ".spec.replicas")
	server := recorded(".spec", "", []ownership.Owner{helm})
	req := take(server, false)
	for name, test := range map[string]struct {
		from ownership.Owner
		path fieldpath.Path
		want bool
	}{
		"as written down": {helm, replicas, true},
		"claimed later":   {later, replicas, false},
		"of another":      {other, replicas, false},
		"not asked for":   {helm, pathOf(t, ".metadata.labels.a"), false},
	} {
		if got := req.Take(test.from, test.path); got != test.want {
			t.Errorf("%s: it is taken: %t", name, got)
		}
	}
	if req := take(server, true); req.Take(helm, replicas) {
		t.Error("it is taken twice")
	}
}

const (
	applyBackend  = "apply StatefulSet/web freehold-backend"
	applyRequests = "apply MCPServer/web freehold-requests"
	editBackend   = "edit StatefulSet/web freehold-ownership"
)

func (o *operating) backendImage() string {
	o.t.Helper()
	set, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
	return set.Spec.Template.Spec.Containers[0].Image
}

// What was taken is ours again; it is taken once, and who takes it back meets no resistance but the conflict.
func TestWhatIsToBeTakenIsTakenOnce(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		seize(t, o, "evil")
		o.rest()
		o.took()
		o.events.heard()

		o.annotate("web", v1beta1.AnnotationTake, "statefulset.apps/web:"+mcpImage)
		if got := o.toChildren(); !slices.Equal(got, []string{applyRequests, editBackend, applyBackend}) {
			t.Errorf("requests %q", got)
		}
		if got := o.backendImage(); got != "example.com/web" {
			t.Errorf("image %s, want ours", got)
		}
		if owners := ownersOf[*appsv1.StatefulSet](o.apiServer, "web", mcpImage); !slices.Equal(owners, []string{managers.Backend}) {
			t.Errorf("owners %q", owners)
		}
		if status, reason, message := o.condition("web", v1beta1.ConditionFieldsTaken); status != metav1.ConditionTrue || reason != v1beta1.ReasonTaken || !strings.Contains(message, `from "helm"`) {
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
		if got := o.toChildren(); len(got) > 0 || o.backendImage() != "evil" {
			t.Errorf("requests %q and image %s after it was seized again", got, o.backendImage())
		}
		o.annotate("web", v1beta1.AnnotationTake, "")
		o.annotate("web", v1beta1.AnnotationTake, "helm")
		if got := o.backendImage(); got != "example.com/web" {
			t.Errorf("image %s after it was asked for again", got)
		}
		o.annotate("web", v1beta1.AnnotationTake, "")
		if status, _, _ := o.condition("web", v1beta1.ConditionFieldsTaken); status != "" {
			t.Errorf("FieldsTaken is %s without a request", status)
		}
	})
}

// A write that loses a race between two that take something does not end the request: the rest is taken too.
func TestATakeThatLosesARaceGoesOn(t *testing.T) {
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
		o.before.set(func(w write) error {
			if w.kind == "Deployment" && w.verb == "edit" && races.Add(1) == 1 {
				return apierrors.NewConflict(schema.GroupResource{}, w.name, errors.New("the object has been modified"))
			}
			return nil
		})
		o.annotate("web", v1beta1.AnnotationTake, "helm")
		o.rest()
		if races.Load() != 2 {
			t.Errorf("claims on the Deployment were edited %d times, want twice", races.Load())
		}
		deployment, _ := get[*appsv1.Deployment](o.apiServer, "web")
		if image := deployment.Spec.Template.Spec.Containers[0].Image; image == "evil" || o.backendImage() == "evil" {
			t.Errorf("images %s and %s, want ours", image, o.backendImage())
		}
		status, reason, message := o.condition("web", v1beta1.ConditionFieldsTaken)
		if status != metav1.ConditionTrue || reason != v1beta1.ReasonTaken ||
			!strings.Contains(message, " of deployment.apps/web from ") || !strings.Contains(message, " of statefulset.apps/web from ") {
			t.Errorf("FieldsTaken is %s because of %s: %s", status, reason, message)
		}
	})
}

// What is left to others stays as it is, costs nothing, and is ours again when it is not left any more.
func TestWhatIsLeftToOthersStaysAsItIs(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.annotate("web", v1beta1.AnnotationYield, mcpImage)
		if got := o.toChildren(); !slices.Equal(got, []string{editBackend}) {
			t.Errorf("requests %q", got)
		}
		if status, reason, _ := o.condition("web", v1beta1.ConditionFieldsYielded); status != metav1.ConditionTrue || reason != v1beta1.ReasonYielded {
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
		o.annotate("web", v1beta1.AnnotationYield, "")
		if status, _, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionFalse || !strings.Contains(message, `"somebody"`) {
			t.Errorf("FieldsOwned is %s: %s", status, message)
		}
	})
}
