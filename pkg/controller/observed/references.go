// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/render"
)

// ServersByReference indexes MCPServers by the objects that they refer to.
const ServersByReference = "references"

// referencesOfServer is a cache.IndexFunc.
func referencesOfServer(obj any) (keys []string, _ error) {
	server, ok := obj.(*v1beta1.MCPServer)
	if !ok {
		return nil, nil
	}
	for _, named := range configs.Of(&server.Spec) {
		keys = append(keys, ReferenceKey(named.Kind, server.Namespace, named.Name))
	}
	return keys, nil
}

// ReferenceKey returns the key of an object in the index ServersByReference.
func ReferenceKey(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// WatchConfigs wakes MCPServers for events of the objects that they refer to, except for those that make no difference to them.
func (s *Scope) WatchConfigs(wake func(server cache.ObjectName)) error {
	for kind, store := range s.ConfigStores {
		wakeServers := func(obj any) {
			if object, err := meta.Accessor(obj); err == nil {
				s.wakeReferrers(ReferenceKey(kind, object.GetNamespace(), object.GetName()), wake)
			}
		}
		if _, err := store.AddEventHandler(Persistent(OnNews(func(now, before metav1.Object) bool {
			return render.StateOf(kind, now) == render.StateOf(kind, before)
		}, wakeServers))); err != nil {
			return err
		}
		store.onFailure = func(ctx context.Context, _ ListFailure, err error) {
			klog.FromContext(ctx).Info("Cannot list what MCPServers may refer to", "kind", kind, "err", err)
			s.wakeReferrersOf(kind, wake)
		}
	}
	return nil
}

// unavailable says why a kind cannot be listed, in words that stay the same.
func unavailable(kind string, failure ListFailure) render.Unavailable {
	switch failure {
	case ListUnserved:
		return render.Unserved(kind)
	case ListForbidden:
		return render.Unavailable{Cause: "the operator is not allowed to list " + kind + "s; apply the manifests of this version"}
	}
	return render.Unavailable{Cause: "the API server does not list " + kind + "s for now; the operator's log has its answer"}
}

// wakeReferrers wakes the MCPServers that refer to an object.
func (s *Scope) wakeReferrers(key string, wake func(server cache.ObjectName)) {
	names, err := s.ServerStore.GetIndexer().IndexKeys(ServersByReference, key)
	if err != nil {
		return
	}
	for _, text := range names {
		if name, err := cache.ParseObjectName(text); err == nil {
			wake(name)
		}
	}
}

// wakeReferrersOf wakes the MCPServers that refer to any object of a kind.
func (s *Scope) wakeReferrersOf(kind string, wake func(server cache.ObjectName)) {
	for _, item := range s.ServerStore.GetStore().List() {
		server, ok := item.(*v1beta1.MCPServer)
		if ok && slices.ContainsFunc(configs.Of(&server.Spec), func(named configs.Named) bool { return named.Kind == kind }) {
			wake(cache.MetaObjectToName(server))
		}
	}
}

// wakeOnceFilled wakes the MCPServers that have waited for a cache.
func (s *Scope) wakeOnceFilled(ctx context.Context, wake func(server cache.ObjectName)) {
	for kind, store := range s.ConfigStores {
		store.OnceFilled(ctx, &s.running, func() { s.wakeReferrersOf(kind, wake) })
	}
}

// config returns an object that is referred to, or nil; blind says why nothing is known of its kind. known is false as long as
// that has not been established, and nothing keeps it from being.
func (s *Scope) config(kind, namespace, name string) (found any, blind *render.Unavailable, known bool) {
	store := s.ConfigStores[kind]
	if !store.HasSynced() {
		failure := store.Failure()
		if failure == Listable {
			return nil, nil, false
		}
		return nil, new(unavailable(kind, failure)), true
	}
	item, exists, err := store.GetStore().GetByKey(cache.NewObjectName(namespace, name).String())
	if err == nil && exists {
		found = item
	}
	return found, nil, true
}

// References returns the objects that an MCPServer refers to, as the caches have them, except ConfigMaps. known is false as long as
// a needed cache may still fill.
func (c *Caches) References(server *v1beta1.MCPServer) (in render.References, known bool) {
	s := c.Scope(server.Namespace)
	if s == nil {
		return in, false
	}
	known = true
	in = render.Collect(&server.Spec, func(kind, name string) (any, *render.Unavailable) {
		found, unavailable, ok := s.config(kind, server.Namespace, name)
		known = known && ok
		return found, unavailable
	})
	return in, known
}
