// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	toolhiveinformers "github.com/freehold-dev/freehold/generated/informers/externalversions"
	toolhivelisters "github.com/freehold-dev/freehold/generated/listers/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
	"github.com/freehold-dev/freehold/pkg/render"
)

// byProxy indexes pods by the MCPServer whose proxy they are.
const byProxy = "proxy"

// caches are the informers of the watched namespaces.
type caches struct {
	// byNamespace has one scope for each watched namespace, or just that of metav1.NamespaceAll.
	byNamespace map[string]*scope
}

// scope are the informers of one namespace, or of all.
type scope struct {
	core     informers.SharedInformerFactory
	pods     informers.SharedInformerFactory
	toolhive toolhiveinformers.SharedInformerFactory

	servers     toolhivelisters.MCPServerLister
	serverStore cache.SharedIndexInformer
	podStore    cache.SharedIndexInformer
	childStores map[schema.GroupKind]cache.SharedIndexInformer
}

func newCaches(
	core kubernetes.Interface, servers versioned.Interface, registry *fieldmanager.Registry,
	namespaces []string, resync time.Duration,
) (*caches, error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	packer, err := newPacker()
	if err != nil {
		return nil, err
	}
	c := &caches{byNamespace: map[string]*scope{}}
	for _, namespace := range namespaces {
		s, err := newScope(core, servers, trimmer{registry}, packer, namespace, resync)
		if err != nil {
			return nil, err
		}
		c.byNamespace[namespace] = s
	}
	return c, nil
}

func newScope(
	core kubernetes.Interface, servers versioned.Interface, trim trimmer, packer *packer,
	namespace string, resync time.Duration,
) (*scope, error) {
	s := &scope{
		core: informers.NewSharedInformerFactoryWithOptions(core, resync,
			informers.WithNamespace(namespace), informers.WithTransform(packer.after(trim.child))),
		pods: informers.NewSharedInformerFactoryWithOptions(core, resync,
			informers.WithNamespace(namespace), informers.WithTransform(trim.pod),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) {
				o.LabelSelector = labels.SelectorFromSet(render.AnyProxySelector()).String()
			})),
		toolhive: toolhiveinformers.NewSharedInformerFactoryWithOptions(servers, resync,
			toolhiveinformers.WithNamespace(namespace)),
	}
	mcpServers := s.toolhive.Toolhive().V1beta1().MCPServers()
	s.servers, s.serverStore = mcpServers.Lister(), mcpServers.Informer()
	s.podStore = s.pods.Core().V1().Pods().Informer()
	if err := s.podStore.AddIndexers(cache.Indexers{byProxy: proxyOfPod}); err != nil {
		return nil, fmt.Errorf("cannot index pods: %w", err)
	}
	s.childStores = map[schema.GroupKind]cache.SharedIndexInformer{
		vocabulary.Deployment:     s.core.Apps().V1().Deployments().Informer(),
		vocabulary.StatefulSet:    s.core.Apps().V1().StatefulSets().Informer(),
		vocabulary.ServiceKind:    s.core.Core().V1().Services().Informer(),
		vocabulary.ConfigMap:      s.core.Core().V1().ConfigMaps().Informer(),
		vocabulary.ServiceAccount: s.core.Core().V1().ServiceAccounts().Informer(),
		vocabulary.Role:           s.core.Rbac().V1().Roles().Informer(),
		vocabulary.RoleBinding:    s.core.Rbac().V1().RoleBindings().Informer(),
	}
	return s, nil
}

func proxyOfPod(obj any) ([]string, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, nil
	}
	return []string{proxyKey(pod).String()}, nil
}

func proxyKey(pod *corev1.Pod) cache.ObjectName {
	return cache.NewObjectName(pod.Namespace, render.ProxyOf(pod.Labels))
}

// start begins to watch, until the first context ends, and returns when every cache holds a complete list or
// the second context ends.
func (c *caches) start(ctx, filling context.Context) error {
	var synced []cache.InformerSynced
	for _, s := range c.byNamespace {
		s.core.Start(ctx.Done())
		s.pods.Start(ctx.Done())
		s.toolhive.Start(ctx.Done())
		synced = append(synced, s.serverStore.HasSynced, s.podStore.HasSynced)
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
		s.pods.Shutdown()
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

// server returns an MCPServer, or nil when there is none.
func (c *caches) server(key cache.ObjectName) *v1beta1.MCPServer {
	s := c.scope(key.Namespace)
	if s == nil {
		return nil
	}
	server, err := s.servers.MCPServers(key.Namespace).Get(key.Name)
	if err != nil {
		return nil
	}
	return server
}

// child returns an object made for an MCPServer, or whatever else has its name, or nil when there is none.
func (c *caches) child(ref apply.ObjectRef) metav1.Object {
	s := c.scope(ref.Namespace)
	if s == nil {
		return nil
	}
	item, exists, err := s.childStores[ref.Kind].GetStore().GetByKey(ref.NamespacedName.String())
	if err != nil || !exists {
		return nil
	}
	obj, err := item.(*packed).unpack(ref.Kind)
	if err != nil {
		utilruntime.HandleError(err)
		return nil
	}
	return obj
}

// proxyPods returns the pods of an MCPServer's proxy.
func (c *caches) proxyPods(key cache.ObjectName) []*corev1.Pod {
	s := c.scope(key.Namespace)
	if s == nil {
		return nil
	}
	items, err := s.podStore.GetIndexer().ByIndex(byProxy, key.String())
	if err != nil {
		return nil
	}
	pods := make([]*corev1.Pod, 0, len(items))
	for _, item := range items {
		if pod, ok := item.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	return pods
}

// version returns how far the cache of an object's kind has come.
func (c *caches) version(ref apply.ObjectRef) string {
	s := c.scope(ref.Namespace)
	if s == nil {
		return ""
	}
	store := s.serverStore
	if ref.Kind != vocabulary.MCPServer {
		store = s.childStores[ref.Kind]
	}
	return store.GetStore().LastStoreSyncResourceVersion()
}

func groupOf(apiVersion string) string {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return ""
	}
	return gv.Group
}
