// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

var configMapKind = schema.GroupKind{Kind: "ConfigMap"}

// newGreeter returns a writer that owns one key of a ConfigMap.
func newGreeter(client kubernetes.Interface) (apply.Writer, error) {
	manager := fieldmanager.Writer{Name: "greeter", Kind: configMapKind, Claim: fieldmanager.Claim{
		Within: []fieldpath.Path{fieldmanager.Path("data", "greeting")},
	}}
	registry := &fieldmanager.Registry{}
	registry.MustRegister(manager)
	type config = corev1ac.ConfigMapApplyConfiguration
	return apply.NewWriter(registry, manager, apply.Target[*corev1.ConfigMap, *config]{
		Apply: func(ctx context.Context, namespace string, config *config, options metav1.ApplyOptions) (*corev1.ConfigMap, error) {
			return client.CoreV1().ConfigMaps(namespace).Apply(ctx, config, options)
		},
		Edits: apply.Edits[*corev1.ConfigMap]{
			Manager: "greeter-ownership", Clock: clock.RealClock{},
			Send: func(ctx context.Context, namespace, name string, patch []byte, options metav1.PatchOptions) (*corev1.ConfigMap, error) {
				return client.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.JSONPatchType, patch, options)
			},
		},
		Extract: corev1ac.ExtractConfigMap,
		Schema:  applyconfigurations.NewTypeConverter(scheme.Scheme),
	})
}

// A writer creates an object, finds that there is nothing to do, and meets somebody who holds its field.
func ExampleApplier_Sync() {
	ctx := context.Background()
	client := fake.NewClientset()
	writer, err := newGreeter(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	applier := apply.NewApplier(nil)
	ref := apply.ObjectRef{Kind: configMapKind, NamespacedName: types.NamespacedName{Namespace: "default", Name: "hello"}}
	sync := func(live metav1.Object, greeting string) metav1.Object {
		out := applier.Sync(ctx, writer, apply.Request{
			Object: ref, Live: live,
			Config: corev1ac.ConfigMap(ref.Name, ref.Namespace).WithData(map[string]string{"greeting": greeting}),
		})
		fmt.Println(out.Action)
		if conflict, ok := errors.AsType[*apply.ConflictError](out.Err); ok {
			for _, field := range conflict.Fields {
				fmt.Println(field.Path, "is held by", field.Owners)
			}
		}
		return out.Live
	}

	live := sync(nil, "Good morning")
	sync(live, "Good morning")

	// Somebody else writes the field, by force. A controller sees that in its cache.
	theirs := corev1ac.ConfigMap(ref.Name, ref.Namespace).WithData(map[string]string{"greeting": "Hands off"})
	taken, err := client.CoreV1().ConfigMaps(ref.Namespace).Apply(ctx, theirs, metav1.ApplyOptions{FieldManager: "editor", Force: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	sync(taken, "Good evening")
	// Output:
	// Created
	// None
	// Refused
	// .data.greeting is held by ["editor"]
}

// What follows from a refusal is decided by its class and not by its text.
func ExamplePolicies() {
	for _, class := range []apply.Class{apply.ClassConflict, apply.ClassMoved, apply.ClassForbidden} {
		policy := apply.Policies()[class]
		fmt.Printf("%s: retry %s, reason %q\n", class, policy.Retry, policy.Reason)
	}
	// Output:
	// Conflict: retry OnChange, reason "FieldManagerConflict"
	// Moved: retry Soon, reason ""
	// Forbidden: retry Backoff, reason "Forbidden"
}
