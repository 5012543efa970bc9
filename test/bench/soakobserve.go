// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhiveinformers "github.com/freehold-dev/freehold/generated/informers/externalversions"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// byServer is the index of children by the name of their MCPServer.
const byServer = "server"

// serversResource is how sightings name MCPServers.
const serversResource = "mcpservers"

// observer sees by watches of its own what becomes of MCPServers and their children. It keeps metadata of the children alone.
type observer struct {
	children map[string]cache.SharedIndexInformer // by resource
	servers  cache.SharedIndexInformer
	end      func()
}

// observe begins to watch a namespace. Each sighting goes to see.
func (s *site) observe(ctx context.Context, namespace string, see func(server string, seen sighting)) (_ *observer, err error) {
	ctx, cancel := context.WithCancel(ctx)
	identities := metadatainformer.NewFilteredSharedInformerFactory(s.metadata, 0, namespace, nil)
	toolhive := toolhiveinformers.NewSharedInformerFactoryWithOptions(s.servers, 0, toolhiveinformers.WithNamespace(namespace))
	o := &observer{
		children: map[string]cache.SharedIndexInformer{}, servers: toolhive.Toolhive().V1beta1().MCPServers().Informer(),
		end: func() {
			cancel()
			identities.Shutdown()
			toolhive.Shutdown()
		},
	}
	defer func() {
		if err != nil {
			o.end()
		}
	}()
	synced := []cache.InformerSynced{o.servers.HasSynced}
	for _, resource := range childGVRs() {
		informer := identities.ForResource(resource).Informer()
		if err := informer.AddIndexers(cache.Indexers{byServer: indexByServer}); err != nil {
			return nil, err
		}
		_, err := informer.AddEventHandler(onSight(func(obj any) {
			if child, ok := obj.(metav1.Object); ok {
				see(serverNames.FindString(child.GetName()), sightingOf(resource.Resource, child))
			}
		}))
		if err != nil {
			return nil, err
		}
		o.children[resource.Resource] = informer
		synced = append(synced, informer.HasSynced)
	}
	_, err = o.servers.AddEventHandler(onSight(func(obj any) {
		if server, ok := obj.(*v1beta1.MCPServer); ok {
			see(server.Name, sighting{resource: serversResource, name: server.Name, uid: server.UID, conflict: namesConflict(server)})
		}
	}))
	if err != nil {
		return nil, err
	}
	identities.Start(ctx.Done())
	toolhive.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, fmt.Errorf("the watches of namespace %s did not start: %w", namespace, context.Cause(ctx))
	}
	return o, nil
}

// childGVRs are the resources of children, each once.
func childGVRs() (resources []schema.GroupVersionResource) {
	for _, child := range inventory.Children() {
		if resource := child.GroupVersionResource(); !slices.Contains(resources, resource) {
			resources = append(resources, resource)
		}
	}
	return resources
}

// cachedGVRs are the resources whose objects the operator keeps in memory, for each MCPServer.
func cachedGVRs() []schema.GroupVersionResource {
	return append(childGVRs(), v1beta1.SchemeGroupVersion.WithResource(serversResource), corev1.SchemeGroupVersion.WithResource("pods"),
		appsv1.SchemeGroupVersion.WithResource("replicasets"))
}

// countCached counts the objects of a namespace that the operator keeps in memory, by resource.
func (s *site) countCached(ctx context.Context, namespace string) (map[string]int, error) {
	counts := map[string]int{}
	for _, resource := range cachedGVRs() {
		first, err := s.metadata.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return nil, fmt.Errorf("cannot count %s: %w", resource.Resource, err)
		}
		counts[resource.Resource] = len(first.Items) + int(ptr.Deref(first.RemainingItemCount, 0))
	}
	return counts, nil
}

func indexByServer(obj any) ([]string, error) {
	child, ok := obj.(metav1.Object)
	if !ok {
		return nil, nil
	}
	return []string{serverNames.FindString(child.GetName())}, nil
}

func sightingOf(resource string, child metav1.Object) sighting {
	seen := sighting{resource: resource, name: child.GetName(), uid: child.GetUID()}
	if source, ok := apply.ParseSource(child.GetAnnotations()[v1beta1.AnnotationSource]); ok {
		seen.source = source.Generation
	}
	return seen
}

// childrenOf returns the children of an MCPServer of a resource, by their names.
func (o *observer) childrenOf(server, resource string) (found []metav1.Object) {
	objects, err := o.children[resource].GetIndexer().ByIndex(byServer, server)
	if err != nil {
		return nil // There is such an index.
	}
	for _, obj := range objects {
		if child, ok := obj.(metav1.Object); ok {
			found = append(found, child)
		}
	}
	slices.SortFunc(found, func(a, b metav1.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return found
}

// server returns an MCPServer; nil if there is none.
func (o *observer) server(namespace, name string) *v1beta1.MCPServer {
	obj, exists, err := o.servers.GetStore().GetByKey(namespace + "/" + name)
	if server, ok := obj.(*v1beta1.MCPServer); ok && exists && err == nil {
		return server
	}
	return nil
}

// onGone shows the name of each MCPServer that goes, once, until end is called.
func (o *observer) onGone(show func(name string)) (end func(), err error) {
	handle, err := o.servers.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if object, ok := lastKnown(obj).(metav1.Object); ok {
			show(object.GetName())
		}
	}})
	if err != nil {
		return nil, err
	}
	return func() { _ = o.servers.RemoveEventHandler(handle) }, nil
}

// ready is how many MCPServers are Ready.
func (o *observer) ready() (count int) {
	for _, obj := range o.servers.GetStore().List() {
		if server, ok := obj.(*v1beta1.MCPServer); ok && server.Status.Phase == v1beta1.PhaseReady {
			count++
		}
	}
	return count
}

// unready describes MCPServers that are not Ready, that name a conflict, or that are not the ones with these UIDs, or whose children
// are not as many as children says by resource. It names the first of them.
func (o *observer) unready(namespace string, uids map[string]types.UID, children map[string]int) (found []string, count int) {
	for name, uid := range uids {
		var why string
		server := o.server(namespace, name)
		switch {
		case server == nil:
			why = "does not exist"
		case server.UID != uid:
			why = "is another one"
		case server.Status.Phase != v1beta1.PhaseReady:
			why = fmt.Sprintf("has phase %q", server.Status.Phase)
		case namesConflict(server):
			why = "names a conflict"
		default:
			why = o.miscounted(name, children)
		}
		if why == "" {
			continue
		}
		if count++; count <= shownViolations {
			found = append(found, name+" "+why)
		}
	}
	return found, count
}

// miscounted describes a resource of which an MCPServer has not as many children as it should; "" if there is none. Of ConfigMaps it
// may have more: that of an earlier RunConfig stays for as long as a ReplicaSet names it, which a rollback would need.
func (o *observer) miscounted(server string, children map[string]int) string {
	for resource, want := range children {
		if has := len(o.childrenOf(server, resource)); has < want || has > want && resource != "configmaps" {
			return fmt.Sprintf("has %d %s, want %d", has, resource, want)
		}
	}
	return ""
}

// awaitReady waits until every MCPServer is Ready, with all its children and no conflict.
func (o *observer) awaitReady(ctx context.Context, namespace string, uids map[string]types.UID, children map[string]int) error {
	ticker := time.NewTicker(10 * pollInterval)
	defer ticker.Stop()
	for {
		found, count := o.unready(namespace, uids, children)
		if count == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d MCPServers are not as they should be, such as: %s: %w", count, found[0], context.Cause(ctx))
		case <-ticker.C:
		}
	}
}
