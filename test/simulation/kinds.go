// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"net"
	"reflect"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	builtinac "k8s.io/client-go/applyconfigurations"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"         // registers conversions and defaults
	_ "k8s.io/kubernetes/pkg/apis/coordination/install" // registers conversions and defaults
	_ "k8s.io/kubernetes/pkg/apis/core/install"         // registers conversions and defaults
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"         // registers conversions and defaults
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// builtins returns the kinds of Kubernetes that the operator, and the controllers of the simulation, work with. What they do is
// done by the code of the real API server.
var builtins = sync.OnceValues(func() ([]*apiserver.Kind, error) {
	fields := builtinac.NewTypeConverter(kubescheme.Scheme)
	var kinds []*apiserver.Kind
	for _, k := range []struct {
		version  schema.GroupVersion
		kind     string
		resource string
		main     strategy
		status   strategy
		graceful bool
		prepare  func(obj, old runtime.Object)
	}{
		{appsv1.SchemeGroupVersion, "Deployment", "deployments", deployment.Strategy, deployment.StatusStrategy, false, nil},
		{appsv1.SchemeGroupVersion, "ReplicaSet", "replicasets", replicaset.Strategy, replicaset.StatusStrategy, false, nil},
		{appsv1.SchemeGroupVersion, "StatefulSet", "statefulsets", statefulset.Strategy, statefulset.StatusStrategy, false, nil},
		{corev1.SchemeGroupVersion, "Pod", "pods", pod.Strategy, pod.StatusStrategy, true, nil},
		{corev1.SchemeGroupVersion, "Service", "services", service.Strategy, service.StatusStrategy, false, allocate},
		{corev1.SchemeGroupVersion, "ConfigMap", "configmaps", configmap.Strategy, nil, false, nil},
		{corev1.SchemeGroupVersion, "ServiceAccount", "serviceaccounts", serviceaccount.Strategy, nil, false, nil},
		{coordinationv1.SchemeGroupVersion, "Lease", "leases", lease.Strategy, nil, false, nil},
		{rbacv1.SchemeGroupVersion, "Role", "roles", role.Strategy, nil, false, nil},
		{rbacv1.SchemeGroupVersion, "RoleBinding", "rolebindings", rolebinding.Strategy, nil, false, nil},
	} {
		gvk := k.version.WithKind(k.kind)
		kind, err := typed(apiserver.Kind{
			GroupVersionKind: gvk, Resource: k.resource, Status: k.status != nil, Graceful: k.graceful, Fields: fields,
			Strategy: &builtin{gvk, k.resource, k.main, k.status, k.prepare},
		})
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, kind)
	}
	namespaces, err := typed(apiserver.Kind{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Resource: "namespaces", ClusterScoped: true, Status: true, Fields: fields,
	})
	if err != nil {
		return nil, err
	}
	return withOtherChildren(append(kinds, namespaces), fields)
})

// withOtherChildren adds the kinds of children that have no row: they are served without defaults and validation.
func withOtherChildren(kinds []*apiserver.Kind, fields managedfields.TypeConverter) ([]*apiserver.Kind, error) {
	for _, child := range inventory.Children() {
		gvr := child.GroupVersionResource()
		if slices.ContainsFunc(kinds, func(k *apiserver.Kind) bool { return k.GroupResource() == gvr.GroupResource() }) {
			continue
		}
		kind, err := typed(apiserver.Kind{
			GroupVersionKind: gvr.GroupVersion().WithKind(child.Kind.Kind), Resource: gvr.Resource, Fields: fields,
		})
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// typed completes a kind whose objects are of the Go type that clients have for it.
func typed(kind apiserver.Kind) (*apiserver.Kind, error) {
	made, err := kubescheme.Scheme.New(kind.GroupVersionKind)
	if err != nil {
		return nil, fmt.Errorf("%s is no kind: %w", kind.GroupVersionKind, err)
	}
	empty := reflect.TypeOf(made).Elem()
	kind.New = func() runtime.Object { return reflect.New(empty).Interface().(runtime.Object) }
	kind.Scheme = kubescheme.Scheme
	return &kind, kind.Prepare()
}

// strategy is how a registry of the real API server treats the objects of a kind.
type strategy interface {
	rest.RESTUpdateStrategy
}

// builtin is the apiserver.Strategy of a kind of Kubernetes.
type builtin struct {
	kind         schema.GroupVersionKind
	resource     string
	main, status strategy
	// prepare does what the real registry does outside of its strategy; nil for nothing.
	prepare func(obj, old runtime.Object)
}

// Default sets the defaults of the version.
func (*builtin) Default(obj runtime.Object) { legacyscheme.Scheme.Default(obj) }

// Create checks and completes a new object.
func (b *builtin) Create(obj runtime.Object) error {
	if b.prepare != nil {
		b.prepare(obj, nil)
	}
	return b.internally(obj, "", func(ctx context.Context, internal runtime.Object) error {
		return rest.BeforeCreate(b.main.(rest.RESTCreateStrategy), ctx, internal)
	})
}

// Update checks and completes a changed object.
func (b *builtin) Update(subresource string, obj, old runtime.Object) error {
	by := b.main
	if subresource == "status" {
		by = b.status
	}
	if b.prepare != nil {
		b.prepare(obj, old)
	}
	before, err := legacyscheme.Scheme.ConvertToVersion(old.DeepCopyObject(), schema.GroupVersion{Group: b.kind.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		return err
	}
	return b.internally(obj, subresource, func(ctx context.Context, internal runtime.Object) error {
		return rest.BeforeUpdate(by, ctx, internal, before)
	})
}

// internally has an object treated in the form in which strategies know it.
func (b *builtin) internally(obj runtime.Object, subresource string, treat func(ctx context.Context, internal runtime.Object) error) error {
	internal, err := legacyscheme.Scheme.ConvertToVersion(obj, schema.GroupVersion{Group: b.kind.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := treat(requestFor(b.kind, b.resource, subresource, obj), internal); err != nil {
		return err
	}
	after, err := legacyscheme.Scheme.ConvertToVersion(internal, b.kind.GroupVersion())
	if err != nil {
		return err
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(after).Elem())
	obj.GetObjectKind().SetGroupVersionKind(b.kind)
	return nil
}

// ResetFields are those that the real registry resets.
func (b *builtin) ResetFields(subresource string) *fieldpath.Set {
	by := b.main
	if subresource == "status" && b.status != nil {
		by = b.status
	}
	resets, ok := by.(rest.ResetFieldsStrategy)
	if !ok {
		return nil
	}
	return resets.GetResetFields()[fieldpath.APIVersion(b.kind.GroupVersion().String())]
}

// requestFor is the context of a request, as handlers prepare it for strategies.
func requestFor(kind schema.GroupVersionKind, resource, subresource string, obj runtime.Object) context.Context {
	namespace, name := access(obj).GetNamespace(), access(obj).GetName()
	return genericapirequest.WithRequestInfo(genericapirequest.WithNamespace(context.Background(), namespace), &genericapirequest.RequestInfo{
		IsResourceRequest: true, APIGroup: kind.Group, APIVersion: kind.Version, Resource: resource, Subresource: subresource,
		Namespace: namespace, Name: name,
	})
}

// allocate gives a Service its address, as the registry of Services does.
func allocate(obj, old runtime.Object) {
	after, ok := obj.(*corev1.Service)
	if !ok {
		return
	}
	if before, ok := old.(*corev1.Service); ok {
		spec := &after.Spec
		if spec.ClusterIP == "" {
			spec.ClusterIP = before.Spec.ClusterIP
		}
		if len(spec.ClusterIPs) == 0 && spec.ClusterIP == before.Spec.ClusterIP {
			spec.ClusterIPs = before.Spec.ClusterIPs // A client that knows but one of the two fields has not cleared the other.
		}
		if spec.IPFamilies == nil {
			spec.IPFamilies, spec.IPFamilyPolicy = before.Spec.IPFamilies, before.Spec.IPFamilyPolicy
		}
		return
	}
	single := corev1.IPFamilyPolicySingleStack
	after.Spec.IPFamilies, after.Spec.IPFamilyPolicy = []corev1.IPFamily{corev1.IPv4Protocol}, &single
	if after.Spec.ClusterIP == "" {
		// The address has no meaning here, but it is one, and the same in each run.
		sum := 0
		for _, c := range after.Name {
			sum = sum*31 + int(c)
		}
		after.Spec.ClusterIP = net.IPv4(10, 96, byte(sum>>8), byte(sum)).String()
	}
	after.Spec.ClusterIPs = []string{after.Spec.ClusterIP}
}
