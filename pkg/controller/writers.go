// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// clients are the writers of all managers and the means to delete objects that are not wanted any more.
type clients struct {
	*writers.Clients
	registry *fieldmanager.Registry
	// of has the writers of each kind of child.
	of map[schema.GroupKind][]apply.Writer
	// evict asks for the deletion of a pod, which its PodDisruptionBudget may refuse.
	evict deleteFunc
}

// deleteFunc deletes an object of one kind.
type deleteFunc func(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error

// reading returns a function that reads an object.
func (c *clients) reading(ref apply.ObjectRef) func(ctx context.Context) (metav1.Object, error) {
	return func(ctx context.Context) (metav1.Object, error) {
		return c.Objects[ref.Kind].Get(ctx, ref.Namespace, ref.Name)
	}
}

// writer returns the writer of a kind that a field manager is.
func (c *clients) writer(manager string, kind schema.GroupKind) apply.Writer {
	return c.Writers[writers.Key{Manager: manager, Kind: kind}]
}

// deletion returns a function that sends the deletion of an object.
func (c *clients) deletion(ref apply.ObjectRef) func(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return func(ctx context.Context, name string, options metav1.DeleteOptions) error {
		return c.Objects[ref.Kind].Delete(ctx, ref.Namespace, name, options)
	}
}

// eviction returns a function that sends the eviction of a pod.
func (c *clients) eviction(namespace string) func(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return func(ctx context.Context, name string, options metav1.DeleteOptions) error {
		return c.evict(ctx, namespace, name, options)
	}
}

// newClients connects every registered manager with the typed client of its kind.
func newClients(
	registry *fieldmanager.Registry, core kubernetes.Interface, servers versioned.Interface, clock clock.PassiveClock,
) (*clients, error) {
	connected, err := writers.Connect(registry, core, servers, clock)
	c := &clients{Clients: connected, registry: registry, of: map[schema.GroupKind][]apply.Writer{}}
	c.Objects[observed.PodKind] = writers.Objects{Delete: func(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
		return core.CoreV1().Pods(namespace).Delete(ctx, name, options)
	}}
	c.evict = func(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
		return core.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, DeleteOptions: &options,
		})
	}
	for _, manager := range registry.Writers() {
		if w, ok := c.Writers[writers.Key{Manager: manager.Name, Kind: manager.Kind}]; ok {
			c.of[manager.Kind] = append(c.of[manager.Kind], w)
		}
	}
	return c, err
}
