// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configcontroller

import (
	"context"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
)

// Kinds of ToolHive besides MCPServer that refer to the same objects as MCPServers. Freehold reconciles none of them; it counts them
// before it releases an object that they need.
const (
	virtualServerKind = "VirtualMCPServer"
	remoteProxyKind   = "MCPRemoteProxy"
	entryKind         = "MCPServerEntry"
)

// referrerKind is a kind of ToolHive that refers to configs and groups.
type referrerKind struct {
	kind, resource string
	// paths of references in its spec, by the kind that they refer to; "*" is every member of a map or a list.
	paths []referencePath
}

type referencePath struct {
	to   string
	path []string
}

// referrerKinds are those kinds. A VirtualMCPServer names a group without being a member of it.
var referrerKinds = []referrerKind{
	{virtualServerKind, "virtualmcpservers", []referencePath{
		{configs.OIDC, []string{"incomingAuth", "oidcConfigRef"}},
		{configs.AuthzConfig, []string{"incomingAuth", "authzConfigRef"}},
		{configs.ExternalAuth, []string{"outgoingAuth", "default", "externalAuthConfigRef"}},
		{configs.ExternalAuth, []string{"outgoingAuth", "backends", "*", "externalAuthConfigRef"}},
		{configs.Tool, []string{"config", "aggregation", "tools", "*", "toolConfigRef"}},
		{configs.Telemetry, []string{"telemetryConfigRef"}},
	}},
	{remoteProxyKind, "mcpremoteproxies", []referencePath{
		{configs.OIDC, []string{"oidcConfigRef"}},
		{configs.AuthzConfig, []string{"authzConfigRef"}},
		{configs.ExternalAuth, []string{"externalAuthConfigRef"}},
		{configs.ExternalAuth, []string{"authServerRef"}},
		{configs.Tool, []string{"toolConfigRef"}},
		{configs.Telemetry, []string{"telemetryConfigRef"}},
		{configs.Group, []string{"groupRef"}},
	}},
	{entryKind, "mcpserverentries", []referencePath{
		{configs.ExternalAuth, []string{"externalAuthConfigRef"}},
		{configs.Group, []string{"groupRef"}},
	}},
}

// Referrers returns the kinds besides MCPServer that refer to the same objects, by their resources.
func Referrers() map[schema.GroupVersionResource]string {
	kinds := map[schema.GroupVersionResource]string{}
	for i := range referrerKinds {
		kinds[referrerKinds[i].gvr()] = referrerKinds[i].kind
	}
	return kinds
}

func (r *referrerKind) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: toolhive.GroupName, Version: v1beta1.SchemeGroupVersion.Version, Resource: r.resource}
}

// refersTo reports whether objects of the kind may refer to objects of another one.
func (r *referrerKind) refersTo(kind string) bool {
	return slices.ContainsFunc(r.paths, func(reference referencePath) bool { return reference.to == kind })
}

// referrer is what is kept of an object that refers to others: its identity and the references.
type referrer struct {
	metav1.ObjectMeta
	to []configs.Named
}

// reduce is a cache.TransformFunc for objects of the kind.
func (r *referrerKind) reduce(obj any) (any, error) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil // reduced before
	}
	return &referrer{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
			DeletionTimestamp: object.GetDeletionTimestamp(),
		},
		to: r.references(object),
	}, nil
}

// references returns the objects that one of the kind refers to.
func (r *referrerKind) references(object *unstructured.Unstructured) (all []configs.Named) {
	for _, reference := range r.paths {
		eachAt(object.Object["spec"], reference.path, func(found any) {
			ref, _ := found.(map[string]any)
			name, _ := ref["name"].(string)
			if kind, _ := ref["kind"].(string); name == "" || kind != "" && kind != reference.to {
				return
			}
			if named := (configs.Named{Kind: reference.to, Name: name}); !slices.Contains(all, named) {
				all = append(all, named)
			}
		})
	}
	return all
}

// eachAt calls a function with whatever is at a path.
func eachAt(value any, path []string, found func(any)) {
	if len(path) == 0 {
		found(value)
		return
	}
	switch value := value.(type) {
	case map[string]any:
		if path[0] != "*" {
			eachAt(value[path[0]], path[1:], found)
			return
		}
		for _, member := range value {
			eachAt(member, path[1:], found)
		}
	case []any:
		if path[0] == "*" {
			for _, member := range value {
				eachAt(member, path[1:], found)
			}
		}
	}
}

// referrers are caches of the objects of referrerKinds. They start when Freehold keeps an object that such an object may refer to:
// where ToolHive's operator keeps it, nothing is watched. A cluster need not serve the kinds, nor let the operator list them; it
// does not count a kind that is not served or that it may not list.
type referrers struct {
	client dynamic.Interface
	server discovery.ServerResourcesInterface
	wake   func(key configKey)
	// wakeGroups is called when more is known of the members of the groups of a scope.
	wakeGroups func(s *observed.Scope)
	running    sync.WaitGroup

	mu      sync.Mutex
	watched map[*observed.Scope][]*referrerStore
}

// referrerStore is the cache of one kind.
type referrerStore struct {
	*referrerKind
	*observed.Store
}

// notCounted are why the objects of a kind are not counted: there are none, or the operator is not allowed to know.
var notCounted = map[observed.ListFailure]string{
	observed.ListUnserved: "the CustomResourceDefinition is not installed", observed.ListForbidden: "the operator is not allowed to list them",
}

// newReferrers returns caches that have not begun. A nil client makes none.
func newReferrers(client dynamic.Interface, server discovery.ServerResourcesInterface, wake func(key configKey), wakeGroups func(s *observed.Scope)) *referrers {
	return &referrers{client: client, server: server, wake: wake, wakeGroups: wakeGroups, watched: map[*observed.Scope][]*referrerStore{}}
}

// watch begins to watch the namespaces of a scope, once, until the context ends.
func (r *referrers) watch(ctx context.Context, s *observed.Scope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, begun := r.watched[s]; begun || r.client == nil {
		return
	}
	stores := []*referrerStore{}
	for i := range referrerKinds {
		store, err := r.begin(ctx, s, &referrerKinds[i])
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot watch what refers to configurations", "referrer", referrerKinds[i].kind)
			continue
		}
		stores = append(stores, store)
	}
	r.watched[s] = stores
}

// begin begins to watch one kind.
func (r *referrers) begin(ctx context.Context, s *observed.Scope, of *referrerKind) (*referrerStore, error) {
	indexers := cache.Indexers{observed.ServersByReference: func(obj any) (keys []string, _ error) {
		if found, ok := obj.(*referrer); ok {
			for _, named := range found.to {
				keys = append(keys, observed.ReferenceKey(named.Kind, found.Namespace, named.Name))
			}
		}
		return keys, nil
	}}
	informer := dynamicinformer.NewFilteredDynamicInformer(r.client, of.gvr(), s.Namespace, 0, indexers, nil).Informer()
	if err := informer.SetTransform(observed.Surviving(of.reduce)); err != nil {
		return nil, err
	}
	if _, err := informer.AddEventHandler(observed.Persistent(observed.OnNews(func(now, before *referrer) bool {
		return (now.DeletionTimestamp == nil) == (before.DeletionTimestamp == nil) && slices.Equal(now.to, before.to)
	}, func(obj any) {
		if found, ok := obj.(*referrer); ok {
			for _, named := range found.to {
				r.wake(configKey{named.Kind, cache.NewObjectName(found.Namespace, named.Name)})
			}
		}
	}))); err != nil {
		return nil, err
	}
	store, err := s.Optional(of.gvr(), of.kind, informer, r.server, func(ctx context.Context, failure observed.ListFailure, _ error) {
		cause, uncounted := notCounted[failure]
		if !uncounted {
			cause = "the API server does not list them for now"
		}
		klog.FromContext(ctx).Info("Cannot list what may refer to configurations", "referrer", of.kind, "cause", cause, "counted", !uncounted)
		r.wakeGroups(s)
	})
	if err != nil {
		return nil, err
	}
	r.running.Go(func() { informer.RunWithContext(ctx) })
	store.OnceFilled(ctx, &r.running, func() { r.wakeGroups(s) })
	return &referrerStore{of, store}, nil
}

func (r *referrers) of(s *observed.Scope) []*referrerStore {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.watched[s]
}

// known reports whether each cache of a scope that may have members of groups is filled, or known not to fill.
func (r *referrers) known(s *observed.Scope) bool {
	return !slices.ContainsFunc(r.of(s), func(store *referrerStore) bool {
		return store.refersTo(configs.Group) && !store.HasSynced() && store.Failure() == observed.Listable
	})
}

// unlisted returns the kinds that have members of groups and cannot be listed for one reason.
func (r *referrers) unlisted(s *observed.Scope, reason observed.ListFailure) (kinds []string) {
	for _, store := range r.of(s) {
		if store.refersTo(configs.Group) && store.Failure() == reason {
			kinds = append(kinds, store.kind)
		}
	}
	return kinds
}

// user is an object that refers to another.
type user struct{ kind, name string }

// referring returns the objects that refer to this one, as the caches show them, except those being deleted: they render nothing any more.
func (p *pass) referring() (users []user) {
	key := observed.ReferenceKey(p.key.kind, p.key.Namespace, p.key.Name)
	add := func(kind string, store cache.SharedIndexInformer) {
		items, err := store.GetIndexer().ByIndex(observed.ServersByReference, key)
		if err != nil {
			return
		}
		for _, item := range items {
			if object, ok := item.(metav1.Object); ok && object.GetDeletionTimestamp() == nil {
				users = append(users, user{kind, object.GetName()})
			}
		}
	}
	add(v1beta1.MCPServerKind, p.scope.ServerStore)
	for _, store := range p.referrers.of(p.scope) {
		add(store.kind, store)
	}
	return users
}

// users returns the objects that refer to this one, as the caches show them, sorted.
func (p *pass) users() []string { return named(p.referring()) }

func named(users []user) (names []string) {
	for _, u := range users {
		names = append(names, u.kind+" "+u.name)
	}
	slices.Sort(names)
	return names
}

// listUsers returns the objects that refer to this one, as the API server has them now, sorted.
func (p *pass) listUsers(ctx context.Context) ([]string, error) {
	var users []user
	refers := func(object metav1.Object, to []configs.Named) bool {
		return object.GetDeletionTimestamp() == nil && slices.Contains(to, configs.Named{Kind: p.key.kind, Name: p.key.Name})
	}
	servers, err := p.config.Servers.ToolhiveV1beta1().MCPServers(p.key.Namespace).List(ctx, metav1.ListOptions{}) //nolint:forbidigo // A lister may be behind.
	if err != nil {
		return nil, err
	}
	for i := range servers.Items {
		if server := &servers.Items[i]; refers(server, configs.Of(&server.Spec)) {
			users = append(users, user{v1beta1.MCPServerKind, server.Name})
		}
	}
	if p.config.Dynamic == nil {
		return named(users), nil
	}
	for i := range referrerKinds {
		of := &referrerKinds[i]
		if !of.refersTo(p.key.kind) {
			continue
		}
		found, err := p.config.Dynamic.Resource(of.gvr()).Namespace(p.key.Namespace).List(ctx, metav1.ListOptions{}) //nolint:forbidigo // A lister may be behind.
		switch {
		case apierrors.IsNotFound(err) && observed.IsUnserved(p.config.Servers.Discovery(), of.gvr()), apierrors.IsForbidden(err):
			continue // Not counted, which the log says.
		case err != nil:
			return nil, err
		}
		for j := range found.Items {
			if object := &found.Items[j]; refers(object, of.references(object)) {
				users = append(users, user{of.kind, object.GetName()})
			}
		}
	}
	return named(users), nil
}
