// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhiveinformers "github.com/freehold-dev/freehold/generated/informers/externalversions"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// milestone is something that is to become so for every MCPServer.
type milestone string

const (
	// childrenExist: every object that is rendered for it exists.
	childrenExist milestone = "children exist"
	// proxiesReady: its Deployment has a ready pod.
	proxiesReady milestone = "proxies ready"
	// serversReady: its phase says so.
	serversReady milestone = "MCPServers Ready"
)

// childResources are the kinds of children of which only the existence counts.
var childResources = func() map[schema.GroupVersionResource]string {
	resources := map[schema.GroupVersionResource]string{}
	for _, child := range inventory.Children() {
		if child.Kind != managers.Deployment {
			resources[child.GroupVersionResource()] = child.Kind.Kind
		}
	}
	return resources
}()

// goal is a set of things that are to become so, and the moment at which the last of them did.
type goal struct {
	mu      sync.Mutex
	missing map[string]bool
	reached chan struct{}
	at      time.Time
}

func newGoal(things []string) *goal {
	g := &goal{missing: map[string]bool{}, reached: make(chan struct{})}
	for _, thing := range things {
		g.missing[thing] = true
	}
	return g
}

// met tells that one of the things has become so. Things that nobody waits for are passed over.
func (g *goal) met(thing string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.missing[thing] {
		return
	}
	delete(g.missing, thing)
	if len(g.missing) == 0 {
		g.at = time.Now()
		close(g.reached)
	}
}

// wait returns when the last thing has become so.
func (g *goal) wait(ctx context.Context) (time.Time, error) {
	select {
	case <-g.reached:
		return g.at, nil
	case <-ctx.Done():
		g.mu.Lock()
		defer g.mu.Unlock()
		return time.Time{}, fmt.Errorf("%d to go, the first of them %s: %w",
			len(g.missing), slices.Min(slices.Collect(maps.Keys(g.missing))), context.Cause(ctx))
	}
}

// watcher sees from outside, by watches of its own, how far MCPServers have come.
type watcher struct {
	goals map[milestone]*goal
	end   func()
}

// watch begins to watch namespaces, and returns when all that is in them has been seen. The children are named as
// the function child names them.
func (s *site) watch(ctx context.Context, p places, servers, children []string) (*watcher, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{goals: map[milestone]*goal{
		childrenExist: newGoal(children), proxiesReady: newGoal(servers), serversReady: newGoal(servers),
	}}
	identities := metadatainformer.NewFilteredSharedInformerFactory(s.metadata, 0, p.watched(), nil)
	core := informers.NewSharedInformerFactoryWithOptions(s.core, 0, informers.WithNamespace(p.watched()))
	toolhive := toolhiveinformers.NewSharedInformerFactoryWithOptions(s.servers, 0, toolhiveinformers.WithNamespace(p.watched()))
	w.end = func() {
		cancel()
		identities.Shutdown()
		core.Shutdown()
		toolhive.Shutdown()
	}

	var synced []cache.InformerSynced
	observe := func(informer cache.SharedIndexInformer, see func(obj any)) error {
		handle, err := informer.AddEventHandler(p.handler(onSight(see)))
		if err == nil {
			synced = append(synced, handle.HasSynced)
		}
		return err
	}
	for resource, kind := range childResources {
		err := observe(identities.ForResource(resource).Informer(), func(obj any) {
			if object, ok := obj.(metav1.Object); ok {
				w.goals[childrenExist].met(child(kind, object.GetName()))
			}
		})
		if err != nil {
			w.end()
			return nil, err
		}
	}
	err := observe(core.Apps().V1().Deployments().Informer(), func(obj any) {
		if deployment, ok := obj.(*appsv1.Deployment); ok {
			w.goals[childrenExist].met(child(managers.Deployment.Kind, deployment.Name))
			if deployment.Status.ReadyReplicas > 0 {
				w.goals[proxiesReady].met(deployment.Name)
			}
		}
	})
	if err == nil {
		err = observe(toolhive.Toolhive().V1beta1().MCPServers().Informer(), func(obj any) {
			if server, ok := obj.(*v1beta1.MCPServer); ok && server.Status.Phase == v1beta1.PhaseReady {
				w.goals[serversReady].met(server.Name)
			}
		})
	}
	if err != nil {
		w.end()
		return nil, err
	}
	identities.Start(ctx.Done())
	core.Start(ctx.Done())
	toolhive.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		w.end()
		return nil, fmt.Errorf("the watches of %s did not start: %w", p.name, context.Cause(ctx))
	}
	return w, nil
}

// onSight is a handler that shows each version of an object to see.
func onSight(see func(obj any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, obj any) { see(obj) }}
}

// lastKnown returns the object of a deletion, as it was known last where the watch has missed its end.
func lastKnown(obj any) any {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return unknown.Obj
	}
	return obj
}

func child(kind, name string) string { return kind + "/" + name }
