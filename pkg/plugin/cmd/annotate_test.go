// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/plugin/takeover"
	"github.com/freehold-dev/freehold/pkg/request"
)

// The fields that another field manager gives other values in these tests. The proxy's ServiceAccount cannot be left to others.
var (
	otherImage   = content{"containers": []any{content{"name": "toolhive", "image": "example.com/proxy:mine"}}}
	otherAccount = content{"serviceAccountName": "mine"}
	otherBoth    = content{"containers": otherImage["containers"], "serviceAccountName": "mine"}

	serverRef  = cluster.ServerRef("shop", "web")
	serviceRef = inventory.BackendService.Ref("shop", "web")
)

// A request that was carried out is made again by one write, whether the operator runs or not, and it is one that the operator has not
// carried out. While that waits for the operator, it stays as it is.
func TestARequestThatWasCarriedOutIsMadeAgainByOneWrite(t *testing.T) {
	w := newWorld(t, nil)
	w.contest(otherImage)
	asked := func() string { return w.server().Annotations[v1beta1.AnnotationTake] }
	w.must(ExitDone, "take", "web", "--yes", "--wait=false", known)
	first := asked()
	for range 3 {
		w.answer()
		before := asked()
		_, errOut := w.must(ExitTimeout, "take", "web", "--yes", "--timeout=300ms", known)
		if !strings.Contains(errOut, "written, but the operator has not answered within 300ms") || len(w.writes) != 1 {
			t.Errorf("it has sent %q, and says %s", w.writes, errOut)
		}
		again := asked()
		if again == "" || request.ReadRecord(w.server().Annotations[v1beta1.AnnotationTakeRecord]).IsOf(again) || again == before {
			t.Fatalf("%q, which was carried out, was made %q", before, again)
		}
		if want := request.Write(request.Read(first)); request.Write(request.Read(again)) != want {
			t.Errorf("%q asks for something else than %s", again, want)
		}
		w.must(ExitDone, "take", "web", "--yes", "--wait=false", known)
		if got := asked(); got != again {
			t.Errorf("%q, which waits for the operator, was made %q", again, got)
		}
	}
	// An answer to the text that is left over from another time is none to the request.
	w.answer()
	w.apply(managers.Requests, serverRef, content{"metadata": content{"annotations": content{v1beta1.AnnotationTakeRecord: "{}"}}})
	if out, _ := w.must(ExitTimeout, "take", "web", "--yes", "--timeout=300ms", known); strings.Contains(out, "took it") {
		t.Errorf("it shows an answer that was there before: %s", out)
	}
}

// A request that the operator has not carried out yet stays beside the next one. One that it has carried out, or answered, does not.
func TestAnOpenRequestStaysBesideTheNextOne(t *testing.T) {
	const image, account = `deployment.apps/web:.spec.template.spec.containers[name="toolhive"].image`, "deployment.apps/web:.spec.template.spec.serviceAccountName"
	for name, test := range map[string]struct {
		between func(w *world)
		want    string
	}{
		"not carried out": {func(*world) {}, image + "," + account},
		"under way": {func(w *world) {
			w.answer()
			taken := meta.FindStatusCondition(w.server().Status.Conditions, v1beta1.ConditionFieldsTaken)
			w.apply(managers.Status, serverRef, content{"status": content{"conditions": []any{content{
				"type": taken.Type, "status": "Unknown", "reason": v1beta1.ReasonTaking, "message": taken.Message, "lastTransitionTime": "2026-06-01T10:30:00Z",
			}}}})
		}, image + "," + account},
		"carried out": {(*world).answer, account},
		"recorded": {func(w *world) {
			w.answer()
			w.apply(managers.Status, serverRef, content{"status": content{"conditions": []any{}}})
		}, account},
		"answered": {func(w *world) {
			w.answer()
			w.apply(managers.Requests, serverRef, content{"metadata": content{"annotations": content{v1beta1.AnnotationTakeRecord: "{}"}}})
		}, account},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.contest(otherBoth)
			w.must(ExitDone, "take", "web", "--yes", "--wait=false", known, image)
			test.between(w)
			out, _ := w.must(ExitDone, "take", "web", "--yes", "--wait=false", known, account)
			if got := w.server().Annotations[v1beta1.AnnotationTake]; got != test.want {
				t.Errorf("the request is %q, want %q", got, test.want)
			}
			if says := strings.Contains(out, image+" was asked for before"); says != strings.Contains(test.want, image) {
				t.Errorf("it says\n%s", out)
			}
		})
	}
}

// What is offered to be left to others, and what is left without a name, are the fields with which a writer can go on. About the others the
// user learns that they have to be taken.
func TestOnlyWhatSettlesAConflictIsYielded(t *testing.T) {
	for name, test := range map[string]struct {
		pod     content
		service bool
		// leave is set where something can be left to others.
		leave bool
		want  string
	}{
		"a field that can be left":      {pod: otherImage, leave: true, want: "image"},
		"one of two that can be left":   {pod: otherBoth},
		"none that can be left":         {pod: otherAccount},
		"another object that can be so": {pod: otherBoth, service: true, leave: true, want: "service/mcp-web:"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.contest(test.pod)
			if test.service {
				w.apply("argocd-controller", serviceRef, content{"metadata": content{"labels": content{"app": "theirs"}}})
			}
			partly := test.pod["serviceAccountName"] != nil
			out, _ := w.must(ExitFound, "conflicts", "web", known)
			if strings.Contains(out, " freehold yield ") != test.leave || strings.Contains(out, "Leave it:") != (test.leave && !partly) {
				t.Errorf("conflicts says\n%s", out)
			}
			out, _ = w.must(ExitFound, "conflicts", "web", known, "-o", "json")
			if found := decode[printers.Conflicts](t, out).Servers[0]; (found.Yield != "") != test.leave || found.Take == "" {
				t.Errorf("conflicts offers %q and %q", found.Take, found.Yield)
			}
			want := ExitDone
			if !test.leave {
				want = ExitFailed
			}
			out, errOut := w.must(want, "yield", "web", "--yes", "--wait=false", known)
			yielded := w.server().Annotations[v1beta1.AnnotationYield]
			if !strings.Contains(yielded, test.want) || (yielded != "") != test.leave || strings.Contains(yielded, "serviceAccountName") ||
				partly && strings.Contains(yielded, "deployment.apps") || strings.Contains(out, "No conflicts") {
				t.Errorf("left to others is %q\n%s", yielded, out)
			}
			says := strings.Contains(errOut, "serviceAccountName") && strings.Contains(errOut, "kubectl freehold take -n shop mcpserver/web ")
			if says != partly {
				t.Errorf("of what cannot be left it says %q", errOut)
			}
		})
	}
}

// TestPreviewOffersWhatSettles: the preview of a takeover follows the same rule, for what the MCPServer does not ask to take already.
func TestPreviewOffersWhatSettles(t *testing.T) {
	proxy := inventory.Proxy.Ref("shop", "web")
	at := func(field string) desired.Contested {
		path := fieldpath.MakePathOrDie("spec", "template", "spec", field)
		return desired.Contested{Object: proxy, Writer: managers.Proxy, Location: path, Path: path.String(), Owners: []ownership.Owner{{Manager: "helm"}}}
	}
	for _, test := range []struct{ take, leave string }{
		{"", ""},
		{proxy.String() + ":.spec.template.spec.serviceAccountName", "freehold.dev/yield=" + proxy.String() + ":.spec.template.spec.tolerations"},
	} {
		found, server := &printers.ServerTakeover{}, serverWith(nil)
		server.Annotations = map[string]string{v1beta1.AnnotationTake: test.take}
		o := &takeoverOptions{viewer: viewer{planner: planner{client: &cluster.Client{}}}}
		object := &takeover.Object{Ref: proxy, Contested: []desired.Contested{at("serviceAccountName"), at("tolerations")}}
		if err := o.object(found, server, object, nil, nil); err != nil {
			t.Fatal(err)
		}
		o.settlements(found, server)
		if leaves := found.Yield != "" && strings.Contains(found.Yield, test.leave); leaves != (test.leave != "") || found.Take == "" {
			t.Errorf("with the request %q it offers %q and %q", test.take, found.Take, found.Yield)
		}
	}
}

// Of a child that ToolHive's operator writes to again all is taken, whether the fields are contested or not: as long as that owns any, the
// MCPServer's status stays its. What others contest is taken field by field.
func TestFromToolHiveAllIsTaken(t *testing.T) {
	proxy := inventory.Proxy.Ref("shop", "web")
	const (
		ofToolHive = managers.ToolHiveOperator
		ofOthers   = `deployment.apps/web:.spec.template.spec.containers[name="toolhive"].image`
	)
	note := content{"spec": content{"template": content{"metadata": content{"annotations": content{"toolhive.stacklok.dev/theirs": "1"}}}}}
	image := content{"spec": content{"template": content{"spec": otherImage}}}
	for name, test := range map[string]struct {
		toolHive content
		others   bool
		fields   []string
		// want is empty where nothing fits.
		want string
	}{
		"contested":                {toolHive: image, want: ofToolHive},
		"not contested":            {toolHive: note, want: ofToolHive},
		"not contested, and named": {toolHive: note, fields: []string{ofToolHive}, want: ofToolHive},
		"named of another object":  {toolHive: note, fields: []string{"service/mcp-web:" + ofToolHive}},
		"another is named":         {toolHive: note, fields: []string{managers.ToolHiveRunner}},
		"beside another":           {toolHive: note, others: true, want: ofOthers + "," + ofToolHive},
		"beside another, named":    {toolHive: note, others: true, fields: []string{ofOthers}, want: ofOthers},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.apply(ofToolHive, proxy, (&unstructured.Unstructured{Object: test.toolHive}).DeepCopy().Object)
			if test.others {
				w.contest(otherImage)
			}
			code := ExitDone
			if test.want == "" {
				code = ExitFailed
			}
			out, errOut := w.must(code, append([]string{"take", "web", "--yes", "--wait=false", known}, test.fields...)...)
			if got := w.server().Annotations[v1beta1.AnnotationTake]; got != test.want {
				t.Errorf("the request is %q, want %q\n%s%s", got, test.want, out, errOut)
			}
			if says := strings.Contains(out, proxy.String()+": all that "+ofToolHive+" (Apply) owns"); says != strings.Contains(test.want, ofToolHive) {
				t.Errorf("the preview says\n%s", out)
			}
		})
	}
}

// A variable that another field manager has given another source is contested, and settled as a whole.
func TestAVariableWithAnotherSourceIsSettledAsAWhole(t *testing.T) {
	const want = `statefulset.apps/web:.spec.template.spec.containers[name="mcp"].env[name="MCP_TRANSPORT"]`
	source := content{"configMapKeyRef": content{"name": "site", "key": "transport"}}
	for verb, annotation := range map[string]string{"take": v1beta1.AnnotationTake, "yield": v1beta1.AnnotationYield} {
		w := newWorld(t, nil)
		w.apply("argocd-controller", inventory.Backend.Ref("shop", "web"), content{"spec": content{"template": content{"spec": content{
			"containers": []any{content{"name": "mcp", "env": []any{content{"name": "MCP_TRANSPORT", "valueFrom": source}}}},
		}}}})
		out, errOut := w.must(ExitDone, verb, "web", "--yes", "--wait=false", known)
		if got := w.server().Annotations[annotation]; got != want {
			t.Errorf("%s writes %q, want %q\n%s%s", verb, got, want, out, errOut)
		}
	}
}

// Once a request is written, no error of the wait for the operator's answer reads as if it was not.
func TestNoErrorAfterAWriteReadsAsIfNothingWasWritten(t *testing.T) {
	internal := apiserver.Refuse(apierrors.NewInternalError(errors.New("simulated")))
	forbidden := apiserver.Refuse(apierrors.NewForbidden(schema.GroupResource{}, "web", errors.New("simulated")))
	missing := apiserver.Refuse(apierrors.NewNotFound(schema.GroupResource{}, "web"))
	for name, test := range map[string]struct {
		answer apiserver.Answer
		// times that the answer is given; 0 for ever.
		times int
		code  int
		says  string
	}{
		"an error once":        {answer: internal, times: 1, code: ExitDone},
		"no connection once":   {answer: apiserver.Answer{Broken: errors.New("broken")}, times: 1, code: ExitDone},
		"an error each time":   {answer: internal, code: ExitTimeout, says: "simulated"},
		"the right is lost":    {answer: forbidden, code: ExitTimeout, says: "forbidden"},
		"it is deleted":        {answer: missing, code: ExitTimeout, says: "not found"},
		"an answer that hangs": {code: ExitTimeout, says: "has not answered within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.contest(otherImage)
			over := make(chan struct{})
			defer close(over)
			n := 0
			w.before = func(r *apiserver.Request) *apiserver.Answer {
				if len(w.writes) == 0 || r.Verb != "get" {
					return nil
				}
				if n++; test.times > 0 && n > test.times {
					w.answer()
					return nil
				}
				if test.answer.Code == 0 && test.answer.Broken == nil {
					<-over
				}
				return &test.answer
			}
			timeout := "--timeout=300ms"
			if test.code == ExitDone {
				timeout = "--timeout=30s"
			}
			code, out, errOut := w.run("take", "web", "--yes", timeout, known)
			if code != test.code || !strings.Contains(errOut, test.says) || strings.Contains(errOut, "written, but ") != (code != ExitDone) {
				t.Errorf("it ends with %d\n%s%s", code, out, errOut)
			}
		})
	}
}
