// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// content is an object, or a part of one.
type content = map[string]any

// known are the arguments that stand for those of the operator, which has no Deployment.
const known = "--operator-arg=--openshift=false"

// world is a cluster, on an API server in memory, with the MCPServer web in the namespace shop and the children that the operator's
// writers made for it. No operator runs.
type world struct {
	t      *testing.T
	api    *apiserver.Server
	client dynamic.Interface
	// writes of the plugin, without dry runs.
	writes []string
	// before is called before each of its requests; nil for nothing. If it returns an answer, the API server gives none.
	before func(r *apiserver.Request) *apiserver.Answer
}

// oneVersion is the scheme of objects that are served in one version, so that nothing is to be converted.
type oneVersion struct{ *runtime.Scheme }

// ConvertToVersion implements runtime.ObjectConvertor.
func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// New implements runtime.ObjectCreater.
func (oneVersion) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	return emptyOf(kind), nil
}

func emptyOf(kind schema.GroupVersionKind) *unstructured.Unstructured {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(kind)
	return empty
}

// counting is the strategy of objects that were edited once.
type counting struct{ apiserver.Basic }

// Create implements apiserver.Strategy.
func (counting) Create(obj runtime.Object) error {
	obj.(*unstructured.Unstructured).SetGeneration(2)
	return nil
}

// served are the kinds of a world.
func served() []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{
		v1beta1.SchemeGroupVersion.WithKind(v1beta1.MCPServerKind), corev1.SchemeGroupVersion.WithKind("Pod"),
		coordinationv1.SchemeGroupVersion.WithKind("Lease"), appsv1.SchemeGroupVersion.WithKind("Deployment"),
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
	}
	for _, config := range managers.Configs() {
		kinds = append(kinds, config.GroupVersionKind)
	}
	for _, child := range inventory.Children() {
		kinds = append(kinds, child.GroupVersionResource().GroupVersion().WithKind(child.Kind.Kind))
	}
	return kinds
}

func newWorld(t *testing.T, annotations map[string]string) *world {
	t.Helper()
	w := &world{t: t}
	var kinds []*apiserver.Kind
	seen := map[schema.GroupVersionKind]bool{}
	for _, gvk := range served() {
		if seen[gvk] {
			continue
		}
		seen[gvk] = true
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		kinds = append(kinds, &apiserver.Kind{
			GroupVersionKind: gvk, Resource: plural.Resource, New: func() runtime.Object { return emptyOf(gvk) },
			Fields: writers.Schema(), Scheme: oneVersion{runtime.NewScheme()}, Strategy: counting{},
		})
	}
	var err error
	if w.api, err = apiserver.New(kinds...); err != nil {
		t.Fatal(err)
	}
	if w.client, err = dynamic.NewForConfig(w.api.Connect("others", nil, false)); err != nil {
		t.Fatal(err)
	}
	server := &v1beta1.MCPServer{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: v1beta1.MCPServerKind},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: annotations},
		Spec:       v1beta1.MCPServerSpec{Image: "example.com/mcp:1", Transport: v1beta1.TransportStreamableHTTP, ProxyPort: 8080, MCPPort: 9000},
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(server)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.of(managers.MCPServer).Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{FieldManager: "helm"}); err != nil {
		t.Fatal(err)
	}
	w.apply(managers.Finalizer, serverRef, content{"metadata": content{"finalizers": []any{v1beta1.Finalizer}}})
	for range 2 { // The Deployment names the RunConfig's UID, and the numbers of replicas need their workloads.
		w.write()
	}
	return w
}

// of returns a client for the objects of a kind.
func (w *world) of(kind schema.GroupKind) dynamic.ResourceInterface {
	w.t.Helper()
	found := w.api.KindOf(kind.Group, kind.Kind)
	if found == nil {
		w.t.Fatalf("%s is not served", kind)
	}
	return w.client.Resource(found.GroupVersion().WithResource(found.Resource)).Namespace("shop")
}

// get returns an object; nil for none.
func (w *world) get(ref apply.ObjectRef) *unstructured.Unstructured {
	w.t.Helper()
	object, found := w.api.Get(w.api.KindOf(ref.Kind.Group, ref.Kind.Kind), ref.Namespace, ref.Name)
	if !found {
		return nil
	}
	return object.(*unstructured.Unstructured).DeepCopy()
}

// server returns the MCPServer.
func (w *world) server() *v1beta1.MCPServer {
	w.t.Helper()
	server := &v1beta1.MCPServer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(w.get(serverRef).Object, server); err != nil {
		w.t.Fatal(err)
	}
	return server
}

// apply applies something as a field manager does that takes what it wants.
func (w *world) apply(manager string, ref apply.ObjectRef, config content) {
	w.t.Helper()
	version := w.api.KindOf(ref.Kind.Group, ref.Kind.Kind)
	config["apiVersion"], config["kind"] = version.GroupVersion().String(), version.Kind
	if err := unstructured.SetNestedField(config, ref.Name, "metadata", "name"); err != nil {
		w.t.Fatal(err)
	}
	_, err := w.of(ref.Kind).Apply(w.t.Context(), ref.Name, &unstructured.Unstructured{Object: config}, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		w.t.Fatalf("%s: %v", ref, err)
	}
}

// write writes what the operator wants and has not written yet.
func (w *world) write() {
	w.t.Helper()
	plan, err := desired.New(desired.Input{Server: w.server(), Child: w.get})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range plan.Intents {
		if config := plan.Intents[i].Config(); config != nil {
			w.apply(plan.Intents[i].Writer, plan.Intents[i].Object, (&unstructured.Unstructured{Object: config}).DeepCopy().Object)
		}
	}
}

// contest sets fields of the pods of the proxy, in the name of another field manager.
func (w *world) contest(pod content) {
	w.t.Helper()
	w.apply("argocd-controller", inventory.Proxy.Ref("shop", "web"), content{"spec": content{"template": content{"spec": pod}}})
}

// answer does what the operator does about a request to take: it records the request, and says that it was carried out.
func (w *world) answer() {
	w.t.Helper()
	asked := w.server().Annotations[v1beta1.AnnotationTake]
	w.apply(managers.Requests, serverRef, content{
		"metadata": content{"annotations": content{v1beta1.AnnotationTakeRecord: request.Record{Request: request.Digest(asked)}.String()}},
	})
	w.apply(managers.Status, serverRef, content{"status": content{"conditions": []any{content{
		"type": v1beta1.ConditionFieldsTaken, "status": "True", "reason": v1beta1.ReasonTaken,
		"message": request.AnswerTo(v1beta1.AnnotationTake, asked) + "took it", "lastTransitionTime": "2026-06-01T10:30:00Z",
	}}}})
}

// connect connects a run of the plugin.
func (w *world) connect() http.RoundTripper {
	w.writes = nil
	between := func(r *apiserver.Request, serve func() apiserver.Answer) apiserver.Answer {
		if r.Writes() && !r.DryRun() {
			w.writes = append(w.writes, r.String())
		}
		if w.before != nil {
			if answer := w.before(r); answer != nil {
				return *answer
			}
		}
		return serve()
	}
	return w.api.Connect("plugin", between, false).Transport
}

// run runs the plugin.
func (w *world) run(args ...string) (code int, out, errOut string) {
	w.t.Helper()
	return runOn(w.t, w.connect(), append(args, "--namespace=shop")...)
}

// must runs the plugin, which must end with a code.
func (w *world) must(want int, args ...string) (out, errOut string) {
	w.t.Helper()
	code, out, errOut := w.run(args...)
	if code != want {
		w.t.Fatalf("freehold %s ends with %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, errOut)
	}
	return out, errOut
}

// decode reads what the plugin printed for programs.
func decode[T any](t *testing.T, text string) (found T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return found
}
