// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
)

// condition returns a condition of an MCPServer in short.
func (o *operating) condition(name, conditionType string) (status metav1.ConditionStatus, reason, message string) {
	o.t.Helper()
	c := meta.FindStatusCondition(o.server(name).Status.Conditions, conditionType)
	if c == nil {
		return "", "", ""
	}
	return c.Status, c.Reason, unworded(c.Message)
}

// seize takes the image of the backend over, as a user who forces does.
func seize(t *testing.T, o *operating, image string) {
	t.Helper()
	spec := corev1ac.PodSpec()
	if image != "" {
		spec.WithContainers(corev1ac.Container().WithName("mcp").WithImage(image))
	}
	config := appsv1ac.StatefulSet("web", "shop")
	if image != "" {
		config.WithSpec(appsv1ac.StatefulSetSpec().WithTemplate(corev1ac.PodTemplateSpec().WithSpec(spec)))
	}
	o.took() // Before it, as the answer to it may come at once.
	if _, err := o.core.AppsV1().StatefulSets("shop").Apply(t.Context(), config, metav1.ApplyOptions{FieldManager: "helm", Force: true}); err != nil {
		t.Fatal(err)
	}
}

// Freehold reports a field that another manager owns once, by the status alone, goes on with everything else, and owns the field
// again when the manager gives it up.
func TestAConflictIsReportedOnceAndEndsWhenTheFieldIsGivenUp(t *testing.T) {
	resync := func(c *Config) { c.Resync = time.Minute }
	operate(t, []runtime.Object{newServer("web")}, resync, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		seize(t, o, "evil")
		o.rest()
		o.expect([]string{"apply MCPServer/web/status freehold-status"}, "the image was taken")
		status, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned)
		if status != metav1.ConditionFalse || reason != "FieldManagerConflict" {
			t.Errorf("FieldsOwned is %s because of %s", status, reason)
		}
		for _, part := range []string{`"helm"`, `.spec.template.spec.containers[name="mcp"].image`, "statefulset.apps/web", "freehold-backend"} {
			if !strings.Contains(message, part) {
				t.Errorf("the message does not tell %s: %s", part, message)
			}
		}
		if told := o.events.heard(); len(told) != 1 || !strings.HasPrefix(told[0], "shop/web Warning FieldManagerConflict Apply: ") {
			t.Errorf("events %q, want one about the conflict", told)
		}
		if got := o.server("web").Status; got.Phase != v1beta1.PhaseFailed || got.URL == "" {
			t.Errorf("phase %s, URL %q; it is not as the spec asks for, and goes on serving", got.Phase, got.URL)
		}

		<-time.After(10 * time.Minute)
		o.rest()
		o.expect(nil, "the conflict stands")

		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.ProxyPort = 9090 })
		o.rest()
		if got := o.took(); !slices.Contains(got, "apply Service/mcp-web-proxy freehold-service") || !slices.Contains(got, "apply Deployment/web freehold-proxy") {
			t.Errorf("the other writers do not go on: %v", got)
		}

		seize(t, o, "")
		o.rest()
		set, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
		if image := set.Spec.Template.Spec.Containers[0].Image; image != "example.com/web" {
			t.Errorf("image %s, want ours again", image)
		}
		if status, reason, _ := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s because of %s after the conflict", status, reason)
		}
		if told := o.events.heard(); len(told) != 0 {
			t.Errorf("events %q after the conflict was told", told)
		}
	})
}

// An object that has the name of a child and was not made for the MCPServer is not touched.
func TestForeignObjectIsNotTouched(t *testing.T) {
	foreign := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "mcp-web-proxy", Namespace: "shop", Labels: map[string]string{"whose": "theirs"}},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.0.0.1"},
	}
	operate(t, []runtime.Object{newServer("web"), foreign}, nil, func(t *testing.T, o *operating) {
		// The creation that is refused tells that it is there.
		o.expect(beforeTheBackend, "a foreign Service stands in the way")
		after, _ := get[*corev1.Service](o.apiServer, "mcp-web-proxy")
		if diff := cmp.Diff(foreign, after); diff != "" {
			t.Errorf("it was changed (-before +after):\n%s", diff)
		}
		status, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned)
		if status != metav1.ConditionFalse || reason != "ObjectNotOurs" || !strings.Contains(message, "service/mcp-web-proxy") {
			t.Errorf("FieldsOwned is %s because of %s: %s", status, reason, message)
		}
		if told := o.events.heard(); len(told) != 1 || !strings.Contains(told[0], "ObjectNotOurs") {
			t.Errorf("events %q, want one about the Service", told)
		}

		// No informer shows it, so that it went is found out by the next attempt.
		remove[*corev1.Service](o.apiServer, "mcp-web-proxy")
		<-time.After(apply.LongestWait)
		o.rest()
		o.expect([]string{"apply Service/mcp-web-proxy freehold-service", "apply MCPServer/web/status freehold-status"}, "it went")
		if status, _, _ := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s after it went", status)
		}
	})
}

// A foreign object is left alone as well when a spec has no use for an object of its name.
func TestForeignObjectIsNotPruned(t *testing.T) {
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "mcp-web", Namespace: "shop"}}
	server := newServer("web")
	server.Spec.Transport = v1beta1.TransportStdio
	operate(t, []runtime.Object{server, foreign}, nil, func(t *testing.T, o *operating) {
		if _, ok := get[*corev1.Service](o.apiServer, "mcp-web"); !ok {
			t.Error("it was deleted")
		}
		for _, w := range o.took() {
			if strings.Contains(w, "services/mcp-web") || strings.Contains(w, "Service/mcp-web ") {
				t.Errorf("%s was sent", w)
			}
		}
	})
}

// An object that another MCPServer controls is that one's, whatever its name.
func TestChildOfAnotherMCPServerIsNotTouched(t *testing.T) {
	// The Service of the proxy of a is the Service of the backend of a-proxy.
	first, second := newServer("a"), newServer("a-proxy")
	operate(t, []runtime.Object{first}, nil, func(t *testing.T, o *operating) {
		before, ok := get[*corev1.Service](o.apiServer, "mcp-a-proxy")
		if !ok {
			t.Fatal("the first has no Service")
		}
		o.add(second)
		o.rest()
		after, _ := get[*corev1.Service](o.apiServer, "mcp-a-proxy")
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the Service changed (-before +after):\n%s", diff)
		}
		if _, reason, _ := o.condition("a-proxy", v1beta1.ConditionFieldsOwned); reason != "ObjectNotOurs" {
			t.Errorf("the second's FieldsOwned has reason %s", reason)
		}
		change(o.apiServer, "a-proxy", func(server *v1beta1.MCPServer) { server.Spec.Transport = v1beta1.TransportStdio })
		o.rest()
		if _, ok := get[*corev1.Service](o.apiServer, "mcp-a-proxy"); !ok {
			t.Error("the second, which has no use for a Service of that name, deleted the first's")
		}
	})
}
