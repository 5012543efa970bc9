// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"reflect"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// scaleKind returns the kind of the subresource scale of a kind of workloads.
func (k *Kind) scaleKind() (*Kind, error) {
	scale := &Kind{
		GroupVersionKind: autoscalingv1.SchemeGroupVersion.WithKind("Scale"), Resource: k.Resource + "/scale",
		New: func() runtime.Object { return &autoscalingv1.Scale{} }, Scheme: k.Scheme, Strategy: Basic{},
		Fields: managedfields.NewDeducedTypeConverter(), // The clients' schema has no Scale.
	}
	err := scale.prepare("scale")
	return scale, err
}

// scaled returns a workload as a write of its subresource scale leaves it. The owners of spec.replicas are converted to those of a Scale and
// back. A Scale leaves out the number 0, so 0 takes the number from every owner.
func (k *Kind) scaled(live runtime.Object, write func(scale runtime.Object) (runtime.Object, error)) (runtime.Object, error) {
	workload := live.DeepCopyObject()
	metadata, version := access(workload), k.GroupVersion()
	handler := managedfields.NewScaleHandler(metadata.GetManagedFields(), version,
		managedfields.ResourcePathMappings{version.String(): fieldpath.MakePathOrDie("spec", "replicas")})
	before := k.scaleOf(live)
	owners, err := handler.ToSubresource()
	if err != nil {
		return nil, err
	}
	before.SetManagedFields(owners)
	written, err := write(before)
	if err != nil {
		return nil, err
	}
	after := written.(*autoscalingv1.Scale)
	if after.UID != "" && after.UID != before.UID {
		return nil, apierrors.NewConflict(k.scale.GroupResource(), before.Name,
			fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", after.UID, before.UID)) //nolint:staticcheck // as an API server says it
	}
	if owners, err = handler.ToParent(after.ManagedFields); err != nil {
		return nil, err
	}
	metadata.SetManagedFields(owners)
	metadata.SetResourceVersion(after.ResourceVersion)
	replicasOf(workload).SetInt(int64(after.Spec.Replicas))
	return workload, nil
}

// scaleOf returns what the subresource scale of a workload shows.
func (k *Kind) scaleOf(workload runtime.Object) *autoscalingv1.Scale {
	metadata := access(workload)
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: metadata.GetName(), Namespace: metadata.GetNamespace(), UID: metadata.GetUID(), ResourceVersion: metadata.GetResourceVersion(),
		CreationTimestamp: metadata.GetCreationTimestamp(),
	}}
	scale.SetGroupVersionKind(k.scale.GroupVersionKind)
	if replicas := replicasOf(workload); replicas.IsValid() {
		scale.Spec.Replicas = int32(replicas.Int())
	}
	return scale
}

// replicasOf returns the number of replicas in the spec of a workload; the zero Value for none.
func replicasOf(workload runtime.Object) reflect.Value {
	return reflect.ValueOf(workload).Elem().FieldByName("Spec").FieldByName("Replicas").Elem()
}

// countsReplicas reports whether an object is a workload with a number of replicas in its spec.
func countsReplicas(obj runtime.Object) bool {
	spec, ok := reflect.TypeOf(obj).Elem().FieldByName("Spec")
	if !ok || spec.Type.Kind() != reflect.Struct {
		return false
	}
	replicas, ok := spec.Type.FieldByName("Replicas")
	return ok && replicas.Type == reflect.TypeFor[*int32]()
}
