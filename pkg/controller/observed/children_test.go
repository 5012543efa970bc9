// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	versionedfake "github.com/freehold-dev/freehold/generated/clientset/versioned/fake"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/workload"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// heavy is metadata with all that a cache could do without.
func heavy() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: "web", Namespace: "shop", UID: "1", ResourceVersion: "7", Generation: 3,
		DeletionTimestamp: &metav1.Time{Time: time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)},
		Labels:            map[string]string{"a": "b"},
		Annotations:       map[string]string{"a": "b"},
		Finalizers:        []string{"f"},
		OwnerReferences:   []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "2"}},
		ManagedFields:     []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}},
	}
}

func kinds(meta metav1.ObjectMeta, full bool) map[string]runtime.Object {
	objects := map[string]runtime.Object{
		"Deployment":     &appsv1.Deployment{ObjectMeta: *meta.DeepCopy()},
		"StatefulSet":    &appsv1.StatefulSet{ObjectMeta: *meta.DeepCopy()},
		"Service":        &corev1.Service{ObjectMeta: *meta.DeepCopy()},
		"ConfigMap":      &corev1.ConfigMap{ObjectMeta: *meta.DeepCopy()},
		"ServiceAccount": &corev1.ServiceAccount{ObjectMeta: *meta.DeepCopy()},
		"Role":           &rbacv1.Role{ObjectMeta: *meta.DeepCopy()},
		"RoleBinding":    &rbacv1.RoleBinding{ObjectMeta: *meta.DeepCopy()},
	}
	if full {
		objects["Deployment"].(*appsv1.Deployment).Spec.Paused = true
		objects["StatefulSet"].(*appsv1.StatefulSet).Status.ReadyReplicas = 1
		objects["Service"].(*corev1.Service).Spec.ClusterIP = "10.0.0.1"
		objects["ConfigMap"].(*corev1.ConfigMap).Data = map[string]string{"secret": "large"}
		objects["ServiceAccount"].(*corev1.ServiceAccount).Secrets = []corev1.ObjectReference{{Name: "s"}}
		objects["Role"].(*rbacv1.Role).Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}}}
		objects["RoleBinding"].(*rbacv1.RoleBinding).Subjects = []rbacv1.Subject{{Name: "s"}}
	}
	// Of any other kind there is nothing to know.
	for _, kind := range inventory.Kinds() {
		if objects[kind.Kind] != nil {
			continue
		}
		object, err := scheme.Scheme.New(kind.WithVersion(inventory.Of(kind).Version))
		if err != nil {
			panic(err)
		}
		reflect.ValueOf(object).Elem().FieldByName("ObjectMeta").Set(reflect.ValueOf(*meta.DeepCopy()))
		objects[kind.Kind] = object
	}
	return objects
}

// reducerFor makes children as the controller does.
func reducerFor(t *testing.T) *Reducer {
	t.Helper()
	clients, err := writers.Connect(managers.Registry(), &kubefake.Clientset{}, &versionedfake.Clientset{}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	of := map[schema.GroupKind][]apply.Writer{}
	for key, writer := range clients.Writers {
		of[key.Kind] = append(of[key.Kind], writer)
	}
	return &Reducer{Applier: apply.NewApplier(nil), Writers: of}
}

func emptyStore() cache.Store { return cache.NewStore(cache.MetaNamespaceKeyFunc) }

func noneOutlives(metav1.Object) bool { return false }

// What is left of an object whose MCPServer is gone is nearly always its end, and is not looked at.
func TestAChildThatOutlivesItsMCPServerStaysWhole(t *testing.T) {
	store, gone := emptyStore(), false
	transform := reducerFor(t).Transform(managers.ServiceAccount, store, func(metav1.Object) bool { return gone })
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-sa", UID: "1", ResourceVersion: "1",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "toolhive.stacklok.dev/v1beta1", Kind: "MCPServer", Name: "web", UID: "0"}},
	}}
	for version, whole := range []bool{false, true, true, false} {
		account.ResourceVersion, gone = strconv.Itoa(version), whole
		got, err := transform(account.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if _, is := got.(*corev1.ServiceAccount); is != whole {
			t.Errorf("version %d is kept as %T", version, got)
		}
		if err := store.Add(got); err != nil {
			t.Fatal(err)
		}
	}
}

// Of an object that is no MCPServer's its identity is kept: enough to tell that something stands there, and whose it is.
func TestReduceForeignObjectsToTheirIdentity(t *testing.T) {
	h := heavy()
	want := metav1.ObjectMeta{
		Name: h.Name, Namespace: h.Namespace, UID: h.UID, ResourceVersion: h.ResourceVersion, Generation: h.Generation,
		DeletionTimestamp: h.DeletionTimestamp, OwnerReferences: h.OwnerReferences,
	}
	objects := kinds(heavy(), true)
	if len(objects) != len(inventory.Kinds()) {
		t.Errorf("%d kinds are looked at, children are of %d", len(objects), len(inventory.Kinds()))
	}
	for _, kind := range inventory.Kinds() {
		got, err := reducerFor(t).Transform(kind, emptyStore(), noneOutlives)(objects[kind.Kind])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(metav1.Object(&want), got.(*Cached).child().Object, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// Of a child what is kept is what decides on it: its content, other people's labels and what others own are not.
func TestReduceChildrenToWhatDecides(t *testing.T) {
	for name, mark := range map[string]func(*metav1.ObjectMeta){
		"owned by an MCPServer": func(m *metav1.ObjectMeta) {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "toolhive.stacklok.dev/v1beta1", Kind: "MCPServer", Name: "web"})
		},
		"owned by an MCPServer of the older version": func(m *metav1.ObjectMeta) {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "toolhive.stacklok.dev/v1alpha1", Kind: "MCPServer", Name: "web"}}
		},
		"made from an MCPServer, and nothing else is known of it": func(m *metav1.ObjectMeta) {
			m.Annotations[v1beta1.AnnotationSource], m.Annotations[v1beta1.AnnotationReferences] = "server-web/1", "mcpoidcconfig/idp=idp/1@2"
			m.ManagedFields, m.OwnerReferences = nil, nil
		},
		"written by one of our managers": func(m *metav1.ObjectMeta) {
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{
				Manager: managers.Access, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
			})
		},
	} {
		meta := heavy()
		meta.Labels[v1beta1.LabelToolHiveName] = "web"
		mark(&meta)
		want := meta.DeepCopy()
		want.Finalizers, want.Labels = nil, map[string]string{v1beta1.LabelToolHiveName: "web"}
		delete(want.Annotations, "a")
		if len(want.Annotations) == 0 {
			want.Annotations = nil
		}
		for i := range want.ManagedFields {
			want.ManagedFields[i].FieldsV1, want.ManagedFields[i].FieldsType = nil, ""
		}
		objects := kinds(meta, true)
		for _, kind := range inventory.Kinds() {
			got, err := reducerFor(t).Transform(kind, emptyStore(), noneOutlives)(objects[kind.Kind])
			if err != nil {
				t.Fatal(err)
			}
			left := got.(*Cached).child().Object
			var stripped metav1.Object = want
			switch kind {
			case managers.Deployment:
				stripped = &workload.Deployment{ObjectMeta: *want, Paused: true}
			case managers.StatefulSet:
				stripped = &workload.StatefulSet{ObjectMeta: *want, Status: appsv1.StatefulSetStatus{ReadyReplicas: 1}}
			case managers.ServiceKind: // This one has no selector.
				stripped = &workload.Service{ObjectMeta: *want, Astray: "the selector of its Service is another one"}
			}
			if diff := cmp.Diff(stripped, left, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", kind, name, diff)
			}
		}
	}
}

func TestTransformsLeaveOtherThingsAlone(t *testing.T) {
	gone := cache.DeletedFinalStateUnknown{Key: "shop/web"}
	for _, obj := range []any{gone, &Cached{}, "text", nil} {
		for name, transform := range map[string]cache.TransformFunc{
			"child": reducerFor(t).Transform(managers.ConfigMap, emptyStore(), noneOutlives), "pod": ReduceDependent,
		} {
			if got, err := transform(obj); err != nil || got != obj {
				t.Errorf("%s(%v) = %v, %v", name, obj, got, err)
			}
		}
	}
}

func TestPodsAreFoundByTheirControllers(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
		{Kind: "Owner", UID: "8"}, {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d8f9", UID: "9", Controller: new(true)},
	}}}
	got, err := ReduceDependent(pod)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := controllerUID(got)
	if diff := cmp.Diff([]string{"9"}, keys); diff != "" || err != nil {
		t.Errorf("index of what is left (-want +got), %v:\n%s", err, diff)
	}
	for _, other := range []any{"no pod", &workload.Pod{}, ReducedReplicaSet(&appsv1.ReplicaSet{})} {
		if keys, err := controllerUID(other); len(keys) != 0 || err != nil {
			t.Errorf("index of %v: %v, %v", other, keys, err)
		}
	}
}
