// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/watch"
	builtinac "k8s.io/client-go/applyconfigurations"
	kubefake "k8s.io/client-go/kubernetes/fake"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/applyconfiguration"
	versionedfake "github.com/freehold-dev/freehold/generated/clientset/versioned/fake"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// apiServer answers for two fake clientsets. The trackers of client-go know neither UIDs nor versions nor
// subresources; this one keeps managedFields, preconditions, generations and the status apart as an API server
// does. It does not default, validate or collect garbage: what happens on a real one is for suites on a real one.
type apiServer struct {
	t       *testing.T
	core    *kubefake.Clientset
	servers *versionedfake.Clientset
	// before is asked before each write; an error is the answer.
	before hook
	// after is asked after each apply and each edit of managedFields; an error is the answer although it was made.
	after hook

	scheme            *runtime.Scheme
	tracker           clienttesting.ObjectTracker
	builtin, toolhive managedfields.TypeConverter

	mu      sync.Mutex
	version int
	uids    int
	writes  []write
}

// hook is what a test has asked about writes. It may be set while an operator writes.
type hook struct {
	asked atomic.Pointer[func(w write) error]
}

func (h *hook) set(ask func(w write) error) { h.asked.Store(&ask) }

// ask returns the answer, which is nil as long as nothing is set.
func (h *hook) ask(w write) error {
	if ask := h.asked.Load(); ask != nil && *ask != nil {
		return (*ask)(w)
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

func newAPIServer(t *testing.T, objects ...runtime.Object) *apiServer {
	t.Helper()
	s := &apiServer{t: t, core: &kubefake.Clientset{}, servers: &versionedfake.Clientset{}, scheme: runtime.NewScheme(), version: 1000}
	for _, add := range []func(*runtime.Scheme) error{kubescheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(s.scheme); err != nil {
			t.Fatal(err)
		}
	}
	s.tracker = clienttesting.NewObjectTracker(s.scheme, serializer.NewCodecFactory(s.scheme).UniversalDecoder())
	s.builtin = builtinac.NewTypeConverter(s.scheme)
	s.toolhive = applyconfiguration.NewTypeConverter(s.scheme)
	for _, fake := range []*clienttesting.Fake{&s.core.Fake, &s.servers.Fake} {
		fake.AddReactor("patch", "*", s.patch)
		fake.AddReactor("delete", "*", s.delete)
		fake.AddReactor("*", "*", clienttesting.ObjectReaction(s.tracker))
		fake.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
			w, err := s.tracker.Watch(action.GetResource(), action.GetNamespace(), action.(clienttesting.WatchActionImpl).ListOptions)
			if err != nil {
				return true, nil, err
			}
			return true, selective{watch.Filter(w, selectedBy(action.(clienttesting.WatchAction).GetWatchRestrictions().Labels))}, nil
		})
	}
	for _, obj := range objects {
		s.add(obj)
	}
	return s
}

// selective is a watch of objects that are selected; the tracker of the fake clientset selects none. Once it is
// stopped nobody takes its last events.
type selective struct{ watch.Interface }

func (w selective) Stop() {
	w.Interface.Stop()
	go func() {
		for range w.ResultChan() {
		}
	}()
}

// selectedBy keeps the events of objects whose labels are selected. To a watch, an object that loses them is deleted.
func selectedBy(selector labels.Selector) watch.FilterFunc {
	return func(event watch.Event) (watch.Event, bool) {
		obj, err := meta.Accessor(event.Object)
		if err != nil || selector == nil || selector.Matches(labels.Set(obj.GetLabels())) {
			return event, true
		}
		event.Type = watch.Deleted
		return event, true
	}
}

// patch is the reaction to an apply, and to an edit of managedFields.
func (s *apiServer) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchActionImpl)
	if patch.PatchType == types.JSONPatchType {
		return s.edit(patch)
	}
	body := &unstructured.Unstructured{}
	if err := json.Unmarshal(patch.Patch, &body.Object); err != nil {
		s.t.Errorf("body: %v", err)
	}
	w := write{
		verb: "apply", manager: patch.PatchOptions.FieldManager, kind: body.GetKind(), subresource: patch.Subresource,
		name: patch.Name, patch: patch.Patch,
	}
	if patch.PatchType != types.ApplyPatchType {
		s.t.Errorf("%s is no apply but %s", w, patch.PatchType)
	}
	if force := patch.PatchOptions.Force; force != nil && *force && strings.HasPrefix(w.manager, "freehold-") {
		s.t.Errorf("%s is forced", w)
	}
	s.mu.Lock()
	s.writes = append(s.writes, w)
	s.mu.Unlock()
	if err := s.before.ask(w); err != nil {
		return true, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, err := s.apply(patch, body)
	if err == nil {
		err = s.after.ask(w)
	}
	if err != nil {
		return true, nil, err
	}
	return true, obj, nil
}

func (s *apiServer) apply(patch clienttesting.PatchActionImpl, body *unstructured.Unstructured) (runtime.Object, error) {
	gvr, gvk, options := patch.Resource, body.GroupVersionKind(), patch.PatchOptions
	found, err := s.tracker.Get(gvr, patch.Namespace, patch.Name)
	exists := err == nil
	switch {
	case !exists && !apierrors.IsNotFound(err):
		return nil, err
	case !exists && patch.Subresource != "":
		return nil, apierrors.NewNotFound(gvr.GroupResource(), patch.Name)
	case !exists && body.GetUID() != "":
		return nil, apierrors.NewConflict(gvr.GroupResource(), patch.Name, fmt.Errorf("uid mismatch: no existing object was found"))
	case !exists:
		if found, err = s.scheme.New(gvk); err != nil {
			return nil, err
		}
		found.GetObjectKind().SetGroupVersionKind(gvk)
	}
	manager, err := s.fieldManager(gvk, patch.Subresource)
	if err != nil {
		return nil, err
	}
	applied, err := manager.Apply(found.DeepCopyObject(), body.DeepCopy(), options.FieldManager, options.Force != nil && *options.Force)
	if err != nil {
		return nil, err
	}
	live, next := access(found), access(applied)
	if exists {
		if version := body.GetResourceVersion(); version != "" && version != live.GetResourceVersion() {
			return nil, apierrors.NewConflict(gvr.GroupResource(), patch.Name, fmt.Errorf("the object has been modified"))
		}
		next.SetUID(live.GetUID())
		next.SetResourceVersion(live.GetResourceVersion())
		next.SetGeneration(live.GetGeneration())
		if equality.Semantic.DeepEqual(found, applied) {
			return found, nil
		}
	}
	return s.store(gvr, found, applied, exists)
}

// store keeps an object as the next version of another, or ends it when it was going and nothing holds it.
func (s *apiServer) store(gvr schema.GroupVersionResource, before, after runtime.Object, exists bool) (runtime.Object, error) {
	obj := access(after)
	s.version++
	obj.SetResourceVersion(strconv.Itoa(s.version))
	if !exists {
		s.uids++
		obj.SetUID(types.UID(fmt.Sprint("uid-", s.uids)))
		obj.SetCreationTimestamp(metav1.NewTime(bubbleStart))
	}
	if !equality.Semantic.DeepEqual(specOf(s.t, before), specOf(s.t, after)) && hasGeneration(gvr) {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
	if !exists {
		return after, s.tracker.Create(gvr, after, obj.GetNamespace())
	}
	if err := s.tracker.Update(gvr, after, obj.GetNamespace()); err != nil {
		return nil, err
	}
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		return after, s.tracker.Delete(gvr, obj.GetNamespace(), obj.GetName())
	}
	return after, nil
}

func (s *apiServer) fieldManager(gvk schema.GroupVersionKind, subresource string) (*managedfields.FieldManager, error) {
	converter := s.builtin
	if gvk.Group == toolhive.GroupName {
		converter = s.toolhive
	}
	return managedfields.NewDefaultFieldManager(converter, s.scheme, noDefaults{}, s.scheme, gvk, gvk.GroupVersion(), subresource, nil)
}

// noDefaults is a runtime.ObjectDefaulter.
type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

// delete is the reaction to a delete. It checks preconditions and honours finalizers.
func (s *apiServer) delete(action clienttesting.Action) (bool, runtime.Object, error) {
	del := action.(clienttesting.DeleteActionImpl)
	w := write{verb: "delete", kind: del.Resource.Resource, name: del.Name, deletion: del.DeleteOptions}
	s.mu.Lock()
	s.writes = append(s.writes, w)
	s.mu.Unlock()
	if err := s.before.ask(w); err != nil {
		return true, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.tracker.Get(del.Resource, del.Namespace, del.Name)
	if err != nil {
		return true, nil, err
	}
	obj, want := access(found), del.DeleteOptions.Preconditions
	if want == nil || want.UID == nil || want.ResourceVersion == nil {
		s.t.Errorf("%s has no preconditions", w)
	} else if *want.UID != obj.GetUID() || *want.ResourceVersion != obj.GetResourceVersion() {
		return true, nil, apierrors.NewConflict(del.Resource.GroupResource(), del.Name, fmt.Errorf("precondition"))
	}
	return true, nil, s.tracker.Delete(del.Resource, del.Namespace, del.Name)
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

// reads returns, sorted by nothing but their order, the requests that only read.
func (s *apiServer) reads() []string {
	var reads []string
	for _, fake := range []*clienttesting.Fake{&s.core.Fake, &s.servers.Fake} {
		for _, action := range fake.Actions() {
			switch action.GetVerb() {
			case "get", "list", "watch":
				reads = append(reads, action.GetVerb()+" "+action.GetResource().Resource)
			}
		}
		fake.ClearActions()
	}
	return reads
}

// add puts an object there as somebody else would.
func (s *apiServer) add(obj runtime.Object) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.uids++
	m := access(obj)
	m.SetResourceVersion(strconv.Itoa(s.version))
	if m.GetUID() == "" {
		m.SetUID(types.UID(fmt.Sprint("uid-", s.uids)))
	}
	if err := s.tracker.Add(obj); err != nil {
		s.t.Fatal(err)
	}
}

// get returns an object as it is.
func get[L runtime.Object](s *apiServer, name string) (found L, ok bool) {
	s.t.Helper()
	obj, err := s.tracker.Get(resourceOf[L](s), "shop", name)
	if err != nil {
		return found, false
	}
	return obj.(L), true
}

// change writes an object as another controller, or a user who edits it, would: what it changes it owns.
func change[L runtime.Object](s *apiServer, name string, edit func(L)) {
	s.t.Helper()
	s.changeAt(resourceOf[L](s), name, func(after runtime.Object) { edit(after.(L)) })
}

// changeAt is change for a resource.
func (s *apiServer) changeAt(gvr schema.GroupVersionResource, name string, edit func(runtime.Object)) {
	s.t.Helper()
	found, err := s.tracker.Get(gvr, "shop", name)
	if err != nil {
		s.t.Fatal(err)
	}
	after := found.DeepCopyObject()
	edit(after)
	gvks, _, err := s.scheme.ObjectKinds(found)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	manager, err := s.fieldManager(gvks[0], "")
	if err != nil {
		s.t.Fatal(err)
	}
	updated, err := manager.Update(found.DeepCopyObject(), after, "somebody")
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.store(gvr, found, updated, true); err != nil {
		s.t.Fatal(err)
	}
}

// remove ends an object as a user would.
func remove[L runtime.Object](s *apiServer, name string) {
	s.t.Helper()
	if err := s.tracker.Delete(resourceOf[L](s), "shop", name); err != nil {
		s.t.Fatal(err)
	}
}

// resourceOf returns the resource of a type, which is a pointer to a struct.
func resourceOf[L runtime.Object](s *apiServer) schema.GroupVersionResource {
	s.t.Helper()
	gvks, _, err := s.scheme.ObjectKinds(reflect.New(reflect.TypeFor[L]().Elem()).Interface().(runtime.Object))
	if err != nil {
		s.t.Fatal(err)
	}
	gvr, _ := meta.UnsafeGuessKindToResource(gvks[0])
	return gvr
}

func access(obj runtime.Object) metav1.Object { return obj.(metav1.Object) }

// hasGeneration tells the kinds that count the changes of their spec.
func hasGeneration(gvr schema.GroupVersionResource) bool {
	return gvr.Group == "apps" || gvr.Group == toolhive.GroupName
}

func specOf(t *testing.T, obj runtime.Object) any {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return content["spec"]
}
