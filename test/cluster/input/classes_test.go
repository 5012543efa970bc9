// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// lab applies Deployments in a namespace, as a writer of its own and not as an operator.
type lab struct {
	*harness.Namespace
	core kubernetes.Interface
	// spoil, if set, changes the body of an apply, and path, if set, where it is sent to.
	spoil func(body map[string]any)
	path  string
}

type deploymentConfig = appsv1ac.DeploymentApplyConfiguration

func (l *lab) config(name, image string) *deploymentConfig {
	labels := map[string]string{"app": name}
	return appsv1ac.Deployment(name, l.Name).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(0).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(corev1ac.PodSpec().
			WithContainers(corev1ac.Container().WithName("mcp").WithImage(image)))))
}

// apply sends a configuration as it is, or spoilt.
func (l *lab) apply(ctx context.Context, namespace string, config *deploymentConfig, options metav1.ApplyOptions) (*appsv1.Deployment, error) {
	if l.spoil == nil && l.path == "" {
		return l.core.AppsV1().Deployments(namespace).Apply(ctx, config, options)
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	body := map[string]any{}
	if err := json.Unmarshal(encoded, &body); err != nil {
		return nil, err
	}
	if l.spoil != nil {
		l.spoil(body)
	}
	if encoded, err = json.Marshal(body); err != nil {
		return nil, err
	}
	path := l.path
	if path == "" {
		path = "/apis/apps/v1/namespaces/" + namespace + "/deployments/" + *config.Name
	}
	made := &appsv1.Deployment{}
	return made, l.core.AppsV1().RESTClient().Patch(types.ApplyPatchType).AbsPath(path).Param("fieldManager", options.FieldManager).
		Body(encoded).Do(ctx).Into(made)
}

// settled returns a Deployment when its controller has nothing left to write to it.
func (l *lab) settled(t *testing.T, object metav1.Object) *appsv1.Deployment {
	t.Helper()
	var live *appsv1.Deployment
	harness.Eventually(t, "the Deployment is rolled out", func(ctx context.Context) (err error) {
		if live, err = l.core.AppsV1().Deployments(l.Name).Get(ctx, object.GetName(), metav1.GetOptions{}); err != nil {
			return err
		}
		complete := slices.ContainsFunc(live.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
			return c.Type == appsv1.DeploymentProgressing && c.Reason == "NewReplicaSetAvailable"
		})
		if !complete || live.Status.ObservedGeneration != live.Generation {
			return fmt.Errorf("its status is %+v", live.Status)
		}
		return nil
	})
	return live
}

// deep returns a part of a body.
func deep(body map[string]any, path ...string) map[string]any {
	for _, key := range path {
		body = body[key].(map[string]any)
	}
	return body
}

// TestClassesOfRefusals has the API server refuse writes in each of the ways that there are, and looks at the class of each
// refusal. Each class is met; two of them are decided without a request.
func TestClassesOfRefusals(t *testing.T) {
	t.Parallel()
	l := &lab{Namespace: env.Namespace(t), core: env.Core}
	mine := fieldmanager.Writer{Name: "lab", Kind: managers.Deployment, Claim: fieldmanager.Claim{
		Within: []fieldpath.Path{fieldmanager.Path("metadata"), fieldmanager.Path("spec")},
	}}
	registry := &fieldmanager.Registry{}
	registry.MustRegister(mine)
	target := apply.NewTarget(l.core.AppsV1().Deployments, appsv1ac.ExtractDeployment, applyconfigurations.NewTypeConverter(scheme.Scheme), "lab-editor")
	target.Apply, target.Source = l.apply, v1beta1.AnnotationSource
	writer := apply.MustNewWriter(registry, mine, target)
	nobody := restclient.CopyConfig(env.Config)
	nobody.Impersonate.UserName = "nobody@example.com"
	powerless, err := kubernetes.NewForConfig(nobody)
	if err != nil {
		t.Fatal(err)
	}

	source := apply.Source{UID: "lab", Generation: 1}
	sync := func(req apply.Request) apply.Outcome {
		if req.Object.Name == "" {
			req.Object.Name = "web"
		}
		if req.Object.Namespace == "" {
			req.Object.Namespace = l.Name
		}
		req.Object.Kind, req.Source = managers.Deployment, source
		return apply.NewApplier(nil).Sync(t.Context(), writer, req)
	}
	out := sync(apply.Request{Config: l.config("web", "a:1")})
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	first := out.Live.(*appsv1.Deployment)
	if out = sync(apply.Request{Config: l.config("web", "a:2"), Observed: apply.Observed{Live: l.settled(t, first)}}); out.Err != nil {
		t.Fatal(out.Err)
	}
	live := l.settled(t, out.Live)
	if _, err := l.core.AppsV1().Deployments(l.Name).Apply(t.Context(), l.config("seized", "theirs:1"), metav1.ApplyOptions{FieldManager: "them"}); err != nil {
		t.Fatal(err)
	}
	seized, err := l.core.AppsV1().Deployments(l.Name).Get(t.Context(), "seized", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stale := live.DeepCopy()
	stale.Annotations = map[string]string{v1beta1.AnnotationSource: "lab/9"}
	another := l.config("web", "a:3")
	another.Spec.Selector.MatchLabels["app"], another.Spec.Template.Labels["app"] = "other", "other"
	doubled := l.config("web", "a:3")
	doubled.Spec.Template.Spec.Containers[0].WithEnv(corev1ac.EnvVar().WithName("A").WithValue("1"), corev1ac.EnvVar().WithName("A").WithValue("2"))

	reached := map[apply.Class]bool{}
	for name, test := range map[string]struct {
		want    apply.Class
		request apply.Request
		spoil   func(body map[string]any)
		path    string
		as      kubernetes.Interface
		text    string
	}{
		"another manager has another value": {want: apply.ClassConflict, request: apply.Request{
			Object:   apply.ObjectRef{NamespacedName: types.NamespacedName{Name: "seized"}},
			Config:   l.config("seized", "a:1"),
			Observed: apply.Observed{Live: seized},
		}},
		"an earlier version":          {want: apply.ClassMoved, request: apply.Request{Config: l.config("web", "a:3"), Observed: apply.Observed{Live: first}}},
		"a creation of what is there": {want: apply.ClassMoved, request: apply.Request{Config: l.config("web", "a:3")}},
		"a field that cannot change":  {want: apply.ClassInvalid, request: apply.Request{Config: another, Observed: apply.Observed{Live: live}}, text: "immutable"},
		"a key twice":                 {want: apply.ClassTerminal, request: apply.Request{Config: doubled, Observed: apply.Observed{Live: live}}, text: "duplicate entries for key"},
		"an unknown field": {
			want: apply.ClassTerminal, request: apply.Request{Config: l.config("web", "a:3"), Observed: apply.Observed{Live: live}}, text: "field not declared in schema",
			spoil: func(body map[string]any) { deep(body, "spec", "template", "spec")["bogus"] = 1 },
		},
		"a value of another type": {
			want: apply.ClassTerminal, request: apply.Request{Config: l.config("web", "a:3"), Observed: apply.Observed{Live: live}},
			spoil: func(body map[string]any) { deep(body, "spec")["template"] = []any{"none"} },
		},
		"a body that is too large": {
			want: apply.ClassTerminal, request: apply.Request{Config: l.config("web", "a:3"), Observed: apply.Observed{Live: live}}, text: "limit is",
			spoil: func(body map[string]any) {
				deep(body, "metadata")["annotations"] = map[string]any{"long": strings.Repeat("x", 4<<20)}
			},
		},
		"no right": {want: apply.ClassForbidden, request: apply.Request{Config: l.config("web", "a:3"), Observed: apply.Observed{Live: live}}, as: powerless},
		"no namespace": {want: apply.ClassGone, request: apply.Request{
			Config: l.config("web", "a:3").WithNamespace("no-such-namespace"), Object: apply.ObjectRef{NamespacedName: types.NamespacedName{Namespace: "no-such-namespace"}},
		}},
		"an image that is changed on the way": {
			want: apply.ClassAltered, request: apply.Request{Config: l.config("altered", "a:1"), Object: apply.ObjectRef{NamespacedName: types.NamespacedName{Name: "altered"}}},
			spoil: func(body map[string]any) {
				deep(body, "spec", "template", "spec")["containers"].([]any)[0].(map[string]any)["image"] = "mirror/a:1"
			},
			text: `was sent as "a:1" and is stored as "mirror/a:1"`,
		},
		"not served yet": {want: apply.ClassTransient, request: apply.Request{Config: l.config("web", "a:3"), Observed: apply.Observed{Live: live}}, path: "/apis/example.com/v1/namespaces/x/webs/web"},
		"a newer source": {want: apply.ClassStale, request: apply.Request{Config: l.config("web", "a:3"), Observed: apply.Observed{Live: stale}}},
		"somebody else's": {want: apply.ClassForeign, request: apply.Request{
			Object:        apply.ObjectRef{NamespacedName: types.NamespacedName{Name: "seized"}},
			Config:        l.config("seized", "a:1"),
			Observed:      apply.Observed{Live: seized},
			Preconditions: apply.Preconditions{Mine: func(metav1.Object) bool { return false }},
		}},
	} {
		l.spoil, l.path, l.core = test.spoil, test.path, env.Core
		if test.as != nil {
			l.core = test.as
		}
		out := sync(test.request)
		if got := apply.ClassOf(out.Err); got != test.want {
			t.Errorf("%s: class %s, want %s: %v", name, got, test.want, out.Err)
		}
		if refusal, ok := errors.AsType[*apply.Refusal](out.Err); ok && !strings.Contains(refusal.Reason, test.text) {
			t.Errorf("%s: %q does not say %q", name, refusal.Reason, test.text)
		}
		reached[test.want] = true
	}
	// Whenever the Deployment is written, another client removes a label.
	l.spoil, l.path, l.core = nil, "", env.Core
	applier, ref := apply.NewApplier(nil), apply.ObjectRef{Kind: managers.Deployment, NamespacedName: types.NamespacedName{Namespace: l.Name, Name: "undone"}}
	for range 100 {
		found, err := l.core.AppsV1().Deployments(l.Name).Get(t.Context(), ref.Name, metav1.GetOptions{})
		req := apply.Request{Object: ref, Config: l.config("undone", "a:1").WithLabels(map[string]string{"ours": "true"}), Source: source}
		if err == nil {
			req.Live = found
		}
		out := applier.Sync(t.Context(), writer, req)
		if reached[apply.ClassOf(out.Err)] = true; apply.ClassOf(out.Err) == apply.ClassUndone {
			break
		}
		if apply.ClassOf(out.Err) == apply.ClassMoved {
			continue // The controller of Deployments was faster.
		}
		if out.Err != nil {
			t.Fatal(out.Err)
		}
		if _, err := l.core.AppsV1().Deployments(l.Name).Patch(t.Context(), ref.Name, types.JSONPatchType,
			[]byte(`[{"op":"remove","path":"/metadata/labels/ours"}]`), metav1.PatchOptions{FieldManager: "remover"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, class := range apply.Classes() {
		if !reached[class] {
			t.Errorf("%s has no row", class)
		}
	}
}

// TestBodiesOfCustomResources has bodies of MCPServers refused that can never be stored: what the API server says is what it
// says of its own kinds, so that their writers take it for the same.
func TestBodiesOfCustomResources(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Create(t, harness.HTTPServer("web"))
	for name, body := range map[string]string{
		"an unknown field": `"spec":{"image":"a:1","bogus":1}`,
		"a key twice":      `"spec":{"image":"a:1","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}`,
	} {
		encoded := `{"apiVersion":"` + v1beta1.SchemeGroupVersion.String() + `","kind":"MCPServer","metadata":{"name":"web"},` + body + `}`
		_, err := ns.Servers.Patch(t.Context(), "web", types.ApplyPatchType, []byte(encoded), metav1.PatchOptions{FieldManager: "lab", Force: new(true)})
		if err == nil || !strings.HasPrefix(err.Error(), "failed to create typed patch object (") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
