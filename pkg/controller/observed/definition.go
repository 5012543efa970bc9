// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/pkg/priorityqueue"
)

// Definitions is the resource of CustomResourceDefinitions.
var Definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// minUnserved and maxUnserved bound the wait before a kind that the API server does not serve is listed again, where its definition
// cannot be watched. maxUnservedJitter is the part of the wait that may be added to it.
const (
	minUnserved       = time.Second
	MaxUnserved       = 5 * time.Minute
	maxUnservedJitter = 0.2
)

// definition is the CustomResourceDefinition of a kind that clusters need not serve.
type definition struct {
	kind schema.GroupVersionResource
	// client watches the definition; nil does not.
	client dynamic.Interface
	server discovery.ServerResourcesInterface
	retry  priorityqueue.Wait
}

func NewDefinition(client dynamic.Interface, server discovery.ServerResourcesInterface, kind schema.GroupVersionResource) *definition {
	return &definition{kind: kind, client: client, server: server}
}

// IsUnserved reports whether the API server itself says that it does not serve a kind: it has a document of the group and version, without
// the kind. A 404 to a list does not say so, see apply.IsAbsent.
func IsUnserved(server discovery.ServerResourcesInterface, kind schema.GroupVersionResource) bool {
	served, err := server.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	return err == nil && !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.Resource })
}

// await returns when the API server may serve the kind: its definition says so, or cannot be watched any longer, and some time has
// passed since then. It also returns when the context ends.
func (d *definition) await(ctx context.Context) {
	err := d.watch(ctx)
	if err == nil || ctx.Err() != nil {
		return
	}
	again := wait.Jitter(d.retry.Begin(clock.RealClock{}.Now(), priorityqueue.Bounds{Shortest: minUnserved, Longest: MaxUnserved}), maxUnservedJitter)
	klog.FromContext(ctx).V(2).Info("Cannot watch a CustomResourceDefinition that is not installed", "name", d.name(), "err", err, "again", again)
	timer := time.NewTimer(again)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// name returns the name of the definition.
func (d *definition) name() string { return d.kind.GroupResource().String() }

// watch returns when the definition says that the kind is served. The error says why that cannot be seen.
//
// A watch begins with the present state, so nothing is listed. How long it lasts is left to the API server, which ends it after half
// an hour at the earliest; connections that are dead are noticed by their pings.
func (d *definition) watch(ctx context.Context) error {
	if d.client == nil {
		return errors.New("there is no client for it")
	}
	events, err := d.client.Resource(Definitions).Watch(ctx, metav1.ListOptions{ //nolint:forbidigo // Informers list, and never end.
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, d.name()).String(),
	})
	if err != nil {
		return err
	}
	defer events.Stop()
	for {
		select {
		case event, ok := <-events.ResultChan():
			if !ok {
				return errors.New("the watch has ended")
			}
			if found, ok := event.Object.(*unstructured.Unstructured); ok && event.Type != watch.Deleted && d.ServedBy(found) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ServedBy reports whether the API server serves the kind by a definition.
func (d *definition) ServedBy(found *unstructured.Unstructured) bool {
	return memberOf(found, map[string]any{"name": d.kind.Version, "served": true}, "spec", "versions") &&
		memberOf(found, map[string]any{"type": "Established", "status": "True"}, "status", "conditions")
}

// memberOf reports whether a list in an object has a member with these fields.
func memberOf(of *unstructured.Unstructured, with map[string]any, path ...string) bool {
	found, _, _ := unstructured.NestedFieldNoCopy(of.Object, path...)
	members, _ := found.([]any)
	for _, member := range members {
		object, _ := member.(map[string]any)
		has := object != nil
		for field, value := range with {
			has = has && object[field] == value
		}
		if has {
			return true
		}
	}
	return false
}
