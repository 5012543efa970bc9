// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// deletedResources are those of everything that goes with an MCPServer.
func deletedResources() []schema.GroupVersionResource {
	return append(childGVRs(), v1beta1.SchemeGroupVersion.WithResource("mcpservers"),
		appsv1.SchemeGroupVersion.WithResource("replicasets"), corev1.SchemeGroupVersion.WithResource("pods"))
}

// deleteAll deletes all MCPServers. It takes until they and all objects that have an owner are gone; CPU time and writes are counted
// until the operator is quiet.
func (o *subject) deleteAll(ctx context.Context, p places) (stage, error) {
	var took time.Duration
	done, err := o.observe(ctx, func(ctx context.Context) error {
		gone, end, err := o.site.watchDeletion(ctx, p)
		if err != nil {
			return err
		}
		defer end()
		began := time.Now()
		background := metav1.DeletePropagationBackground
		err = each(ctx, p.servers, func(ctx context.Context, i int) error {
			servers := o.site.servers.ToolhiveV1beta1().MCPServers(p.namespaceOf(i))
			return servers.Delete(ctx, serverName(i), metav1.DeleteOptions{PropagationPolicy: &background})
		})
		if err != nil {
			return fmt.Errorf("cannot delete the MCPServers: %w", err)
		}
		at, err := gone.wait(ctx)
		if err != nil {
			return fmt.Errorf("deletion: %w", err)
		}
		took = at.Sub(began)
		_, err = o.quiet(ctx)
		return err
	})
	done.Took = took
	return done, err
}

// watchDeletion returns a goal that is reached when all MCPServers, and all objects that have an owner now, are gone.
func (s *site) watchDeletion(ctx context.Context, p places) (_ *goal, end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	factory := metadatainformer.NewFilteredSharedInformerFactory(s.metadata, 0, p.watched(), nil)
	end = func() {
		cancel()
		factory.Shutdown()
	}
	var things []string
	stores := map[schema.GroupVersionResource]cache.SharedIndexInformer{}
	for _, resource := range deletedResources() {
		stores[resource] = factory.ForResource(resource).Informer()
	}
	factory.Start(ctx.Done())
	for resource, informer := range stores {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			end()
			return nil, nil, fmt.Errorf("the watch of %s did not start: %w", resource.Resource, context.Cause(ctx))
		}
		for _, obj := range informer.GetStore().List() {
			object, ok := obj.(metav1.Object)
			if ok && p.holds(object) && (resource.Group == v1beta1.SchemeGroupVersion.Group || len(object.GetOwnerReferences()) > 0) {
				things = append(things, child(resource.Resource, object.GetName()))
			}
		}
	}
	gone := newGoal(things)
	for resource, informer := range stores {
		_, err := informer.AddEventHandler(p.handler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
			if object, ok := lastKnown(obj).(metav1.Object); ok {
				gone.met(child(resource.Resource, object.GetName()))
			}
		}}))
		if err != nil {
			end()
			return nil, nil, err
		}
	}
	// What went before the handlers were there has no event for them, such as a pod of an earlier template.
	left := map[string]bool{}
	for resource, informer := range stores {
		for _, obj := range informer.GetStore().List() {
			if object, ok := obj.(metav1.Object); ok && p.holds(object) {
				left[child(resource.Resource, object.GetName())] = true
			}
		}
	}
	for _, thing := range things {
		if !left[thing] {
			gone.met(thing)
		}
	}
	return gone, end, nil
}
