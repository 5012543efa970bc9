// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// configsByServer indexes the ConfigMaps that hold a RunConfig or an inline policy by their MCPServers. Their names
// contain a hash of their content, so they do not follow from the MCPServer's name alone.
const configsByServer = "configs"

// serverOfConfig is a cache.IndexFunc.
func serverOfConfig(obj any) ([]string, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil //nolint:nilerr // What is no object is no child.
	}
	var keys []string
	for _, server := range inventory.Servers(managers.ConfigMap, accessor.GetName()) {
		keys = append(keys, cache.NewObjectName(accessor.GetNamespace(), server).String())
	}
	return keys, nil
}

// ContentNamed returns the ConfigMaps that have the name of a RunConfig or an inline policy of an MCPServer, in the order of
// their names.
func (c *Caches) ContentNamed(server cache.ObjectName) []apply.ObjectRef {
	s := c.Scope(server.Namespace)
	if s == nil {
		return nil
	}
	var keys []string
	for _, child := range inventory.Children() {
		if !child.ByContent {
			continue
		}
		found, err := s.ChildStores[keyOf(child)].GetIndexer().IndexKeys(configsByServer, server.String())
		if err != nil {
			return nil
		}
		keys = append(keys, found...)
	}
	slices.Sort(keys)
	refs := make([]apply.ObjectRef, 0, len(keys))
	for _, key := range keys {
		refs = append(refs, apply.NewObjectRef(managers.ConfigMap, server.Namespace, strings.TrimPrefix(key, server.Namespace+"/")))
	}
	return refs
}
