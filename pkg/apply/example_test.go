// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

var configMapKind = schema.GroupKind{Kind: "ConfigMap"}

// newGreeter returns a writer that owns one key of a ConfigMap.
func newGreeter(client kubernetes.Interface) (apply.Writer, error) {
	manager := fieldmanager.Writer{
		Name: "greeter", Kind: configMapKind, Claim: fieldmanager.Within(fieldmanager.Path("data", "greeting")),
	}
	registry := &fieldmanager.Registry{}
	registry.MustRegister(manager)
	kinds := applyconfigurations.NewTypeConverter(scheme.Scheme)
	return apply.NewWriter(registry, manager, apply.NewTarget(
		client.CoreV1().ConfigMaps, corev1ac.ExtractConfigMap, kinds, "greeter-ownership",
	))
}

// A writer creates an object, then has nothing to write, then is in conflict with another manager about its field.
func ExampleApplier_Sync() {
	ctx := context.Background()
	client := fake.NewClientset()
	writer, err := newGreeter(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	applier := apply.NewApplier(nil)
	ref := apply.NewObjectRef(configMapKind, "default", "hello")
	sync := func(live metav1.Object, greeting string) metav1.Object {
		out := applier.Sync(ctx, writer, apply.Request{
			Object:   ref,
			Config:   corev1ac.ConfigMap(ref.Name, ref.Namespace).WithData(map[string]string{"greeting": greeting}),
			Observed: apply.Observed{Live: live},
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

	// Another manager writes the field by force. The controller sees the object in its cache.
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

// A target is what a generated client writes to. With a source, an older view of what is wanted does not win.
func ExampleNewTarget() {
	ctx := context.Background()
	client := fake.NewClientset()
	manager := fieldmanager.Writer{Name: "greeter", Kind: configMapKind}
	registry := &fieldmanager.Registry{}
	registry.MustRegister(manager)
	kinds := applyconfigurations.NewTypeConverter(scheme.Scheme)
	target := apply.NewTarget(client.CoreV1().ConfigMaps, corev1ac.ExtractConfigMap, kinds, "greeter-ownership")
	target.Source = "example.com/greeting"
	writer := apply.MustNewWriter(registry, manager, target)

	applier := apply.NewApplier(nil)
	sync := func(live metav1.Object, generation int64, greeting string) metav1.Object {
		out := applier.Sync(ctx, writer, apply.Request{
			Object:   apply.NewObjectRef(configMapKind, "default", "hello"),
			Config:   corev1ac.ConfigMap("hello", "default").WithData(map[string]string{"greeting": greeting}),
			Observed: apply.Observed{Live: live},
			Source:   apply.Source{UID: "5f2c", Generation: generation},
		})
		fmt.Println(out.Action, apply.ClassOf(out.Err), out.Live.GetAnnotations())
		return out.Live
	}
	live := sync(nil, 2, "Good morning")
	sync(live, 1, "Good night")
	// Output:
	// Created  map[example.com/greeting:5f2c/2]
	// Refused Stale map[example.com/greeting:5f2c/2]
}

// A controller asks the store of its informer for the object, and ends the pass while that is behind.
func ExampleApplier_GetCurrent() {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	applier := apply.NewApplier(nil)
	ref := apply.NewObjectRef(configMapKind, "default", "hello")
	live, current, err := applier.GetCurrent(ref, store)
	fmt.Println(live, current, err)
	// Output:
	// <nil> true <nil>
}

// The reaction to a refusal depends on its class, and not on its text.
func ExamplePolicies() {
	for _, class := range []apply.Class{apply.ClassConflict, apply.ClassMoved, apply.ClassForbidden} {
		policy := apply.Policies()[class]
		fmt.Printf("%s: again after %s, outcome %q\n", class, policy.FirstWait, policy.Outcome)
	}
	// Output:
	// Conflict: again after 0s, outcome "conflict"
	// Moved: again after 1s, outcome "moved"
	// Forbidden: again after 200ms, outcome "forbidden"
}
