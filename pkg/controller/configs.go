// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/shell"
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

// configs returns the ConfigMaps that have the name of a RunConfig or an inline policy of an MCPServer, in the order of
// their names.
func (c *caches) configs(server cache.ObjectName) []apply.ObjectRef {
	s := c.scope(server.Namespace)
	if s == nil {
		return nil
	}
	var keys []string
	for _, child := range inventory.Children() {
		if !child.ByContent {
			continue
		}
		found, err := s.childStores[keyOf(child)].GetIndexer().IndexKeys(configsByServer, server.String())
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

// wantedConfigs returns the ConfigMaps that are wanted.
func wantedConfigs(server cache.ObjectName, intents []render.Intent) (wanted []apply.ObjectRef) {
	for _, intent := range intents {
		if intent.Kind == managers.ConfigMap {
			wanted = append(wanted, apply.NewObjectRef(intent.Kind, server.Namespace, intent.Name))
		}
	}
	return wanted
}

// configUID returns the UID of a ConfigMap as this pass saw or left it; empty when there is none.
func (v *view) configUID(name string) types.UID {
	live := v.object(apply.NewObjectRef(managers.ConfigMap, v.key.Namespace, name))
	if live == nil {
		return ""
	}
	return live.GetUID()
}

// notWhatItsNameTells says why a ConfigMap that exists is not the one that is wanted, although it has its name and is
// the MCPServer's. What a pod has read of it cannot be undone by writing to it.
func notWhatItsNameTells(ref apply.ObjectRef) string {
	return "its data does not match the digest in its name, so another client wrote it, and Freehold does not use it. " +
		"To let Freehold create it again: " + shell.Command("kubectl", "delete", "configmap", "-n", ref.Namespace, ref.Name)
}

// unmet returns the first object that an intent depends on and that was not brought in line.
func unmet(intent render.Intent, namespace string, unwritten sets.Set[apply.ObjectRef]) (ref apply.ObjectRef, found bool) {
	for _, dependency := range intent.DependsOn {
		if ref = apply.NewObjectRef(dependency.Kind, namespace, dependency.Name); unwritten.Has(ref) {
			return ref, true
		}
	}
	return apply.ObjectRef{}, false
}
