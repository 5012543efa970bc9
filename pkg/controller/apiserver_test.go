// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	builtinac "k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/apis/toolhive/v1alpha1"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/applyconfiguration"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// apiServer is an API server in memory with two clientsets, whose requests it records and checks. It does not default, validate
// or collect garbage: what happens on a real one is for suites on a real one.
type apiServer struct {
	t       *testing.T
	api     *apiserver.Server
	core    kubernetes.Interface
	servers versioned.Interface
	// arriving is asked about each request before anything else; an error is the answer.
	arriving hook[*apiserver.Request]
	// discovering is asked about each request for a document of discovery; an error is the answer. The document has no resource of the name
	// in unserved.
	discovering hook[*apiserver.Request]
	unserved    atomic.Value
	// before is asked before each write; an error is the answer.
	before hook[write]
	// after is asked after each apply and each edit of managedFields; an error is the answer although it was made.
	after hook[write]

	mu       sync.Mutex
	writes   []write
	requests []*apiserver.Request
}

// hook is what a test has asked about requests. It may be set while an operator sends them.
type hook[R any] struct {
	asked atomic.Pointer[func(R) error]
}

func (h *hook[R]) set(ask func(R) error) { h.asked.Store(&ask) }

// ask returns the answer, which is nil as long as nothing is set.
func (h *hook[R]) ask(request R) error {
	if ask := h.asked.Load(); ask != nil && *ask != nil {
		return (*ask)(request)
	}
	return nil
}

// write is one request that changes something, or would.
type write struct {
	verb, manager, kind, subresource, name string
	patch                                  []byte
	deletion                               metav1.DeleteOptions
}

// String is the short form that tests compare. It leaves out the part of a ConfigMap's name that tells its content.
func (w write) String() string {
	target := w.kind + "/" + w.name
	if inventory.HasDigest(w.name) {
		target = target[:strings.LastIndexByte(target, '-')]
	}
	if w.subresource != "" {
		target += "/" + w.subresource
	}
	return strings.TrimSpace(w.verb + " " + target + " " + w.manager)
}

// served are the kinds of an apiServer. Their strategy leaves a status where it is, so that a test changes it with the spec.
var served = sync.OnceValues(func() (map[reflect.Type]*apiserver.Kind, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubescheme.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	builtin, custom := builtinac.NewTypeConverter(scheme), applyconfiguration.NewTypeConverter(scheme)
	kinds := map[reflect.Type]*apiserver.Kind{}
	all := []runtime.Object{
		&appsv1.ReplicaSet{}, &corev1.Pod{}, &v1beta1.MCPServer{},
	}
	var others []schema.GroupVersionKind
	for _, config := range managers.Configs() {
		others = append(others, config.GroupVersionKind)
	}
	for _, child := range inventory.Children() {
		others = append(others, child.Kind.WithVersion(child.Version))
	}
	for _, of := range others {
		empty, err := scheme.New(of)
		if err != nil {
			return nil, err
		}
		all = append(all, empty)
	}
	for _, empty := range all {
		gvks, _, err := scheme.ObjectKinds(empty)
		if err != nil {
			return nil, err
		}
		of, gvk := reflect.TypeOf(empty), gvks[0]
		if kinds[of] != nil {
			continue // There is more than one child of the kind.
		}
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		kind := &apiserver.Kind{
			GroupVersionKind: gvk, Resource: resource.Resource, Graceful: gvk.Kind == "Pod", Fields: builtin, Scheme: scheme,
			New:      func() runtime.Object { return reflect.New(of.Elem()).Interface().(runtime.Object) },
			Strategy: apiserver.Basic{Counts: gvk.Group == appsv1.GroupName || gvk.Group == toolhive.GroupName},
		}
		if gvk.Group == toolhive.GroupName {
			kind.Fields = custom
		}
		if err := kind.Prepare(); err != nil {
			return nil, err
		}
		kinds[of] = kind
	}
	return kinds, nil
})

func newAPIServer(t *testing.T, objects ...runtime.Object) *apiServer {
	t.Helper()
	s := &apiServer{t: t}
	kinds, err := served()
	if err != nil {
		t.Fatal(err)
	}
	var all []*apiserver.Kind
	for _, kind := range kinds {
		all = append(all, kind)
	}
	if s.api, err = apiserver.New(all...); err != nil {
		t.Fatal(err)
	}
	s.connect("operator")
	for _, obj := range objects {
		s.add(obj)
	}
	return s
}

// connect makes the two clientsets, of a client of that name.
func (s *apiServer) connect(client string) {
	s.t.Helper()
	config := s.api.Connect(client, s.intercept, false)
	var err error
	if s.core, err = kubernetes.NewForConfig(config); err != nil {
		s.t.Fatal(err)
	}
	if s.servers, err = versioned.NewForConfig(config); err != nil {
		s.t.Fatal(err)
	}
}

// intercept is the apiserver.Interceptor of both clientsets.
func (s *apiServer) intercept(r *apiserver.Request, serve func() apiserver.Answer) apiserver.Answer {
	if r.Kind == nil {
		return s.discover(r, serve)
	}
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	if err := s.arriving.ask(r); err != nil {
		return refuse(err)
	}
	if !slices.Contains([]string{"apply", "patch", "delete"}, r.Verb) {
		return serve()
	}
	w := s.check(r)
	if r.Verb != "apply" || strings.HasPrefix(w.manager, "freehold-") {
		// What a test applies by itself is no write to count; to drop it afterwards could drop the answer to it as well.
		s.mu.Lock()
		s.writes = append(s.writes, w)
		s.mu.Unlock()
	}
	if err := s.before.ask(w); err != nil {
		return refuse(err)
	}
	answer := serve()
	if w.verb == "delete" || answer.Code >= 300 {
		return answer
	}
	if err := s.after.ask(w); err != nil {
		return refuse(err)
	}
	return answer
}

func (s *apiServer) discover(r *apiserver.Request, serve func() apiserver.Answer) apiserver.Answer {
	if err := s.discovering.ask(r); err != nil {
		return refuse(err)
	}
	answer := serve()
	var document metav1.APIResourceList
	if json.Unmarshal(answer.Body, &document) == nil {
		document.APIResources = slices.DeleteFunc(document.APIResources, func(served metav1.APIResource) bool { return served.Name == s.unserved.Load() })
		answer.Body, _ = json.Marshal(document)
	}
	return answer
}

// refuse returns the answer of an API server, or none for an error of another kind.
func refuse(err error) apiserver.Answer {
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		return apiserver.Refuse(err)
	}
	return apiserver.Answer{Broken: err}
}

// check returns what a request writes, and fails the test if it may not be sent.
func (s *apiServer) check(r *apiserver.Request) write {
	w := write{verb: r.Verb, manager: r.Manager, kind: r.Kind.Kind, subresource: r.Subresource, name: r.Name, patch: r.Body}
	switch r.Verb {
	case "apply":
		if r.Force && strings.HasPrefix(w.manager, "freehold-") {
			s.t.Errorf("%s is forced", w)
		}
	case "delete":
		w.manager, w.kind, w.patch = "", r.Kind.Resource, nil
		if err := json.Unmarshal(r.Body, &w.deletion); err != nil {
			s.t.Errorf("%s: %v", w, err)
		}
		if want := w.deletion.Preconditions; want == nil || want.UID == nil || want.ResourceVersion == nil {
			s.t.Errorf("%s has no preconditions", w)
		}
	default:
		w.verb = "edit"
		s.checkEdit(w, r.PatchType)
	}
	return w
}

// checkEdit fails the test if a patch is not one of managedFields, under the guard of UID and version, and of nothing else.
func (s *apiServer) checkEdit(w write, media types.PatchType) {
	if media != types.JSONPatchType {
		s.t.Errorf("%s is neither an apply nor a JSON patch but %s", w, media)
		return
	}
	var operations []struct{ Op, Path string }
	if err := json.Unmarshal(w.patch, &operations); err != nil {
		s.t.Errorf("%s: %v", w, err)
	}
	guards := map[string]bool{"test /metadata/uid": true, "replace /metadata/resourceVersion": true}
	for _, o := range operations {
		name := o.Op + " " + o.Path
		if !guards[name] && name != "add /metadata/managedFields" {
			s.t.Errorf("%s is no edit of managedFields: %s", w, w.patch)
		}
		delete(guards, name)
	}
	if len(guards) > 0 {
		s.t.Errorf("%s is not guarded: %s", w, w.patch)
	}
}

// took returns the writes since it was asked last, in their order.
func (s *apiServer) took() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var short []string
	for _, w := range s.writes {
		short = append(short, w.String())
	}
	s.writes = nil
	return short
}

// requested returns all requests since it was asked last, in their order.
func (s *apiServer) requested() []*apiserver.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

// reads returns the short form of those that only read.
func (s *apiServer) reads() []string {
	var reads []string
	for _, r := range s.requested() {
		if !r.Writes() {
			reads = append(reads, r.Verb+" "+r.Kind.Resource)
		}
	}
	return reads
}

// onReads asks about the requests that list or watch a resource; an error is the answer.
func (s *apiServer) onReads(resource string, ask func() error) {
	s.arriving.set(func(r *apiserver.Request) error {
		if r.Kind.Resource == resource && (r.Verb == "list" || r.Verb == "watch") {
			return ask()
		}
		return nil
	})
}

// hold keeps the events of a resource from the caches, or lets go of them.
func (s *apiServer) hold(resource string, held bool) {
	for _, w := range s.api.Watches() {
		if w.Kind.Resource == resource {
			w.Hold(held)
		}
	}
}

// add puts an object there as somebody else would.
func (s *apiServer) add(obj runtime.Object) {
	s.t.Helper()
	stored := obj.DeepCopyObject()
	s.api.Put(s.kindOf(obj), stored)
	access(obj).SetUID(access(stored).GetUID())
	access(obj).SetResourceVersion(access(stored).GetResourceVersion())
}

// get returns an object as it is, to a client.
func get[L runtime.Object](s *apiServer, name string) (found L, ok bool) {
	s.t.Helper()
	obj, ok := s.api.Get(s.kindOf(found), "shop", name)
	if !ok {
		return found, false
	}
	found = obj.DeepCopyObject().(L)
	found.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return found, true
}

// change writes an object as another controller, or a user who edits it, would: what it changes it owns.
func change[L runtime.Object](s *apiServer, name string, edit func(L)) {
	s.t.Helper()
	changeAs(s, "", "somebody", name, edit)
}

// changeAs is change through a subresource, or none, by a manager.
func changeAs[L runtime.Object](s *apiServer, subresource, manager, name string, edit func(L)) {
	s.t.Helper()
	var empty L
	s.changeAt(s.kindOf(empty), subresource, manager, name, func(obj runtime.Object) { edit(obj.(L)) })
}

func (s *apiServer) changeAt(kind *apiserver.Kind, subresource, manager, name string, edit func(runtime.Object)) {
	s.t.Helper()
	if err := s.api.Edit(kind, "shop", name, subresource, manager, edit); err != nil {
		s.t.Fatal(err)
	}
}

// remove ends an object as a user would.
func remove[L runtime.Object](s *apiServer, name string) {
	s.t.Helper()
	var empty L
	if err := s.api.Remove(s.kindOf(empty), "shop", name); err != nil {
		s.t.Fatal(err)
	}
}

// kindOf returns the kind of an object, which may be nil.
func (s *apiServer) kindOf(obj runtime.Object) *apiserver.Kind {
	s.t.Helper()
	kinds, err := served()
	if err != nil {
		s.t.Fatal(err)
	}
	kind := kinds[reflect.TypeOf(obj)]
	if kind == nil {
		s.t.Fatalf("%T is not served", obj)
	}
	return kind
}

func access(obj runtime.Object) metav1.Object { return obj.(metav1.Object) }
