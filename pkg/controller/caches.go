// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	toolhiveinformers "github.com/freehold-dev/freehold/generated/informers/externalversions"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
)

// caches are the informers of the watched namespaces.
type caches struct {
	// byNamespace has one scope for each watched namespace, or just that of metav1.NamespaceAll.
	byNamespace map[string]*scope
	reducer     *reducer
}

// scope are the informers of one namespace, or of all.
type scope struct {
	core     informers.SharedInformerFactory
	proxies  informers.SharedInformerFactory
	backends informers.SharedInformerFactory
	toolhive toolhiveinformers.SharedInformerFactory

	serverStore cache.SharedIndexInformer
	// proxyStore holds the pods of all proxies, and backendStore those of all backends.
	proxyStore, backendStore cache.SharedIndexInformer
	// replicaSetStore holds the ReplicaSets of all proxies.
	replicaSetStore cache.SharedIndexInformer
	childStores     map[schema.GroupKind]cache.SharedIndexInformer
}

func newCaches(
	core kubernetes.Interface, servers versioned.Interface,
	namespaces []string, resync time.Duration, reduce *reducer,
) (*caches, error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	c := &caches{byNamespace: map[string]*scope{}, reducer: reduce}
	for _, namespace := range namespaces {
		s, err := newScope(core, servers, reduce, namespace, resync)
		if err != nil {
			return nil, err
		}
		c.byNamespace[namespace] = s
	}
	return c, nil
}

func newScope(
	core kubernetes.Interface, servers versioned.Interface, reduce *reducer, namespace string, resync time.Duration,
) (*scope, error) {
	s := &scope{
		core:     informers.NewSharedInformerFactoryWithOptions(core, resync, informers.WithNamespace(namespace)),
		proxies:  podInformers(core, namespace, render.AnyProxySelector(), resync),
		backends: podInformers(core, namespace, render.AnyBackendSelector(), resync),
		toolhive: toolhiveinformers.NewSharedInformerFactoryWithOptions(servers, resync, toolhiveinformers.WithNamespace(namespace)),
	}
	s.serverStore = s.toolhive.Toolhive().V1beta1().MCPServers().Informer()
	s.backendStore = s.backends.Core().V1().Pods().Informer()
	s.proxyStore = s.proxies.Core().V1().Pods().Informer()
	s.replicaSetStore = s.proxies.Apps().V1().ReplicaSets().Informer()
	for _, store := range []cache.SharedIndexInformer{s.proxyStore, s.backendStore, s.replicaSetStore} {
		if err := store.AddIndexers(cache.Indexers{byController: controllerUID}); err != nil {
			return nil, fmt.Errorf("cannot index pods: %w", err)
		}
	}
	s.childStores = map[schema.GroupKind]cache.SharedIndexInformer{}
	for _, kind := range inventory.Kinds() {
		informer, err := s.core.ForResource(inventory.Of(kind).GroupVersionResource())
		if err != nil {
			return nil, fmt.Errorf("cannot watch %s: %w", kind, err)
		}
		store := informer.Informer()
		if err := store.SetTransform(reduce.transform(kind, func() cache.Store { return store.GetStore() })); err != nil {
			return nil, fmt.Errorf("cannot watch %s: %w", kind, err)
		}
		s.childStores[kind] = store
	}
	if err := s.childStores[managers.ConfigMap].AddIndexers(cache.Indexers{configsByServer: serverOfConfig}); err != nil {
		return nil, fmt.Errorf("cannot index ConfigMaps: %w", err)
	}
	return s, nil
}

func podInformers(
	core kubernetes.Interface, namespace, selector string, resync time.Duration,
) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(core, resync,
		informers.WithNamespace(namespace), informers.WithTransform(slim),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = selector
		}))
}

// start begins to watch, until the first context ends, and returns when every cache holds a complete list or
// the second context ends.
func (c *caches) start(ctx, filling context.Context) error {
	var synced []cache.InformerSynced
	for _, s := range c.byNamespace {
		s.core.Start(ctx.Done())
		s.proxies.Start(ctx.Done())
		s.backends.Start(ctx.Done())
		s.toolhive.Start(ctx.Done())
		synced = append(synced, s.serverStore.HasSynced, s.proxyStore.HasSynced, s.backendStore.HasSynced, s.replicaSetStore.HasSynced)
		for _, store := range s.childStores {
			synced = append(synced, store.HasSynced)
		}
	}
	if !cache.WaitForNamedCacheSyncWithContext(filling, synced...) {
		return fmt.Errorf("the caches did not fill: %w", context.Cause(filling))
	}
	return nil
}

// shutdown returns when all informers have ended; their context must have been cancelled.
func (c *caches) shutdown() {
	for _, s := range c.byNamespace {
		s.core.Shutdown()
		s.proxies.Shutdown()
		s.backends.Shutdown()
		s.toolhive.Shutdown()
	}
}

// scope returns the caches that hold a namespace's objects, or nil when it is not watched.
func (c *caches) scope(namespace string) *scope {
	if s, ok := c.byNamespace[namespace]; ok {
		return s
	}
	return c.byNamespace[metav1.NamespaceAll]
}

// serves reports whether there is an MCPServer.
func (c *caches) serves(key cache.ObjectName) bool { return c.server(key) != nil }

// serverOf returns the name of the MCPServer of a namespace that has a UID; ok is false when there is none.
func (c *caches) serverOf(namespace string, uid types.UID) (name string, ok bool) {
	s := c.scope(namespace)
	if s == nil {
		return "", false
	}
	// Objects without a controller and with another source are rare, so this is less than an index of all would take.
	items, err := s.serverStore.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return "", false
	}
	for _, item := range items {
		if server, ok := item.(*v1beta1.MCPServer); ok && server.UID == uid {
			return server.Name, true
		}
	}
	return "", false
}

// server returns an MCPServer, which must not be modified; nil when there is none.
func (c *caches) server(key cache.ObjectName) *v1beta1.MCPServer {
	server, _ := c.item(serverRef(key)).(*v1beta1.MCPServer)
	return server
}

// child returns what is kept of the object that has the name of a child; nil when there is none.
func (c *caches) child(ref apply.ObjectRef) *child {
	found, _ := c.item(ref).(*child)
	return found
}

func (c *caches) item(ref apply.ObjectRef) any {
	store := c.store(ref)
	if store == nil {
		return nil
	}
	item, exists, err := store.GetByKey(ref.NamespacedName.String())
	if err != nil || !exists {
		return nil
	}
	return item
}

// store returns the cache of an object's kind and namespace, or nil when that is not watched.
func (c *caches) store(ref apply.ObjectRef) cache.Store {
	s := c.scope(ref.Namespace)
	switch {
	case s == nil:
		return nil
	case ref.Kind == managers.MCPServer:
		return s.serverStore.GetStore()
	default:
		return s.childStores[ref.Kind].GetStore()
	}
}

// version returns how far the cache of an object's kind has come.
func (c *caches) version(ref apply.ObjectRef) string {
	store := c.store(ref)
	if store == nil {
		return ""
	}
	return store.LastStoreSyncResourceVersion()
}
