// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/bounds"
	"github.com/freehold-dev/freehold/pkg/configs"
)

// An operator with Config.Selector works for the MCPServers that have certain labels, and others work for the rest. It watches all
// MCPServers, since an object whose MCPServer is another operator's is no leftover, and keeps of those only their identity and
// their references.
//
// When the labels of an MCPServer change, it moves. Both operators see that in watches of their own, and at different times. The one
// that it leaves may see the children that the other one has written before it sees why, and would answer them. So it asks the API
// server before the first request of a pass that changes a child. It decides on what it had read before it asked. If another client has
// written the child since, the precondition of the request fails. So the first operator writes no child after the second one has
// written it.

// Selecting returns a function that reports whether an operator works for an MCPServer; a nil selector selects all.
func Selecting(selector labels.Selector) func(server *v1beta1.MCPServer) bool {
	return func(server *v1beta1.MCPServer) bool {
		return selector == nil || selector.Matches(labels.Set(server.Labels))
	}
}

// reduceServers returns a cache.TransformFunc for MCPServers. Those of other operators are kept in outline, the others whole. Conditions
// and managedFields are the largest part of these, and are alike: their texts are stored once, without the spare room that decoding leaves.
func reduceServers(selects func(server *v1beta1.MCPServer) bool, largest int) cache.TransformFunc {
	texts := lru.New(rememberedTexts)
	// share returns a text equal to this one, as a rule the same for all callers.
	share := func(text string) string {
		if known, ok := texts.Get(text); ok {
			return known.(string)
		}
		if len(text) <= longestText {
			texts.Add(text, text)
		}
		return text
	}
	return func(obj any) (any, error) {
		server, ok := obj.(*v1beta1.MCPServer)
		switch {
		case !ok:
			return obj, nil
		case !selects(server):
			return outlineOf(server), nil
		}
		server = bounds.Reduce(server, largest)
		server.ManagedFields = slices.Clone(server.ManagedFields)
		for i := range server.ManagedFields {
			entry := &server.ManagedFields[i]
			entry.Manager, entry.APIVersion = share(entry.Manager), share(entry.APIVersion)
			if entry.FieldsV1 != nil {
				entry.FieldsV1 = metav1.NewFieldsV1(share(entry.FieldsV1.GetRawString()))
			}
		}
		server.Status.Conditions = slices.Clone(server.Status.Conditions)
		for i := range server.Status.Conditions {
			condition := &server.Status.Conditions[i]
			condition.Type, condition.Reason, condition.Message = share(condition.Type), share(condition.Reason), share(condition.Message)
			condition.Status = metav1.ConditionStatus(share(string(condition.Status)))
		}
		return server, nil
	}
}

const (
	rememberedTexts = 512
	// longestText is how long a text may be that is remembered, in bytes.
	longestText = 4 << 10
)

// reduceLarge returns a cache.TransformFunc for other objects of users: what is kept of one that is too large.
func reduceLarge(largest int) cache.TransformFunc {
	return func(obj any) (any, error) {
		if object, ok := obj.(metav1.Object); ok {
			return bounds.Reduce(object, largest), nil
		}
		return obj, nil
	}
}

// outlineOf returns what is kept of an MCPServer that another operator works for.
func outlineOf(server *v1beta1.MCPServer) *v1beta1.MCPServer {
	meta := identity(server)
	meta.Labels = server.Labels
	return &v1beta1.MCPServer{ObjectMeta: meta, Spec: configs.OnlyReferences(&server.Spec)}
}

// IsSelected reports whether an event is about an MCPServer that the operator works for.
func (c *Caches) IsSelected(obj any) bool {
	server, ok := LastKnown(obj).(*v1beta1.MCPServer)
	return ok && c.selects(server)
}
