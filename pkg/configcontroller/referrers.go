// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configcontroller

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// referrerStore is the cache of one kind. It starts when Freehold keeps an object that one of the kind may refer to: where ToolHive's
// operator keeps it, nothing is watched. A cluster need not serve the kinds, nor let the operator list them; it does not count a kind
// that is not served or that it may not list.
type referrerStore struct {
	*referrerKind
	*observed.Store
}

// notCounted are why the objects of a kind are not counted: there are none, or the operator is not allowed to know.
var notCounted = map[observed.ListFailure]string{
	observed.ListUnserved: "the CustomResourceDefinition is not installed", observed.ListForbidden: "the operator is not allowed to list them",
}

// watchReferrers begins to watch the referrers in a scope, once, until the context ends.
func (k *Controller) watchReferrers(ctx context.Context, s *observed.Scope) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, begun := k.referrers[s]; begun || k.Dynamic == nil {
		return
	}
	k.referrers[s] = nil
	for i := range referrerKinds {
		store, err := k.beginReferrers(ctx, s, &referrerKinds[i])
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot watch what refers to configurations", "referrer", referrerKinds[i].kind)
			continue
		}
		k.referrers[s] = append(k.referrers[s], &referrerStore{&referrerKinds[i], store})
	}
}

func (k *Controller) beginReferrers(ctx context.Context, s *observed.Scope, of *referrerKind) (*observed.Store, error) {
	indexers := cache.Indexers{observed.ServersByReference: func(obj any) (keys []string, _ error) {
		if found, ok := obj.(*referrer); ok {
			for _, named := range found.to {
				keys = append(keys, observed.ReferenceKey(named.Kind, found.Namespace, named.Name))
			}
		}
		return keys, nil
	}}
	informer := dynamicinformer.NewFilteredDynamicInformer(k.Dynamic, of.gvr(), s.Namespace, 0, indexers, nil).Informer()
	if err := informer.SetTransform(observed.Surviving(of.reduce)); err != nil {
		return nil, err
	}
	if _, err := informer.AddEventHandler(observed.Persistent(observed.OnChange(func(now, before *referrer) bool {
		return (now.DeletionTimestamp == nil) == (before.DeletionTimestamp == nil) && slices.Equal(now.to, before.to)
	}, func(found *referrer) { k.wakeNamed(found.Namespace, found.to) }))); err != nil {
		return nil, err
	}
	wakeGroups := func() { k.wakeKind(s, configs.Group) } // More is known of their members, or that it cannot be known.
	store, err := s.Optional(of.gvr(), of.kind, informer, k.Servers.Discovery(), func(ctx context.Context, failure observed.ListFailure, _ error) {
		cause, uncounted := notCounted[failure]
		if !uncounted {
			cause = "the API server does not list them for now"
		}
		klog.FromContext(ctx).Info("Cannot list what may refer to configurations", "referrer", of.kind, "cause", cause, "counted", !uncounted)
		wakeGroups()
	})
	if err != nil {
		return nil, err
	}
	k.running.Go(func() { informer.RunWithContext(ctx) })
	store.OnceFilled(ctx, &k.running, wakeGroups)
	return store, nil
}

func (k *Controller) referrersIn(s *observed.Scope) []*referrerStore {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.referrers[s]
}

// referring returns the objects that refer to this one, as the caches show them, except those being deleted: they render nothing any more.
func (p *pass) referring() (users []configs.Named) {
	key := observed.ReferenceKey(p.key.kind, p.key.Namespace, p.key.Name)
	add := func(kind string, store cache.SharedIndexInformer) {
		items, err := store.GetIndexer().ByIndex(observed.ServersByReference, key)
		if err != nil {
			return
		}
		for _, item := range items {
			if object, ok := item.(metav1.Object); ok && object.GetDeletionTimestamp() == nil {
				users = append(users, configs.Named{Kind: kind, Name: object.GetName()})
			}
		}
	}
	add(v1beta1.MCPServerKind, p.scope.ServerStore)
	for _, store := range p.referrersIn(p.scope) {
		add(store.kind, store)
	}
	return users
}

// listReferring returns the objects that refer to this one, as the API server has them now.
func (p *pass) listReferring(ctx context.Context) (users []configs.Named, _ error) {
	add := func(kind string, object metav1.Object, to []configs.Named) {
		if object.GetDeletionTimestamp() == nil && slices.Contains(to, configs.Named{Kind: p.key.kind, Name: p.key.Name}) {
			users = append(users, configs.Named{Kind: kind, Name: object.GetName()})
		}
	}
	servers, err := p.Servers.ToolhiveV1beta1().MCPServers(p.key.Namespace).List(ctx, metav1.ListOptions{}) //nolint:forbidigo // A lister may be behind.
	if err != nil {
		return nil, err
	}
	for i := range servers.Items {
		add(v1beta1.MCPServerKind, &servers.Items[i], configs.Of(&servers.Items[i].Spec))
	}
	for i := range referrerKinds {
		of := &referrerKinds[i]
		if p.Dynamic == nil || !of.refersTo(p.key.kind) {
			continue
		}
		found, err := p.Dynamic.Resource(of.gvr()).Namespace(p.key.Namespace).List(ctx, metav1.ListOptions{}) //nolint:forbidigo // A lister may be behind.
		switch {
		case apierrors.IsNotFound(err) && observed.IsUnserved(p.Servers.Discovery(), of.gvr()), apierrors.IsForbidden(err):
			continue // Not counted, which the log says.
		case err != nil:
			return nil, err
		}
		for j := range found.Items {
			add(of.kind, &found.Items[j], of.references(&found.Items[j]))
		}
	}
	return users, nil
}
