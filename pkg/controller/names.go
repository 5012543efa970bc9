// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
)

// affix is what stands around an MCPServer's name in the name of a child.
type affix struct{ prefix, suffix string }

// affixes tells the names of the children by kind, but for ConfigMaps, whose names tell their content besides. A child is
// told by its name and not by its owner reference: one whose reference was taken away has to come back as well, and one
// that stands in the way has none.
var affixes = map[schema.GroupKind][]affix{
	managers.Deployment:     {{}},
	managers.StatefulSet:    {{}},
	managers.ServiceKind:    {{prefix: "mcp-", suffix: "-proxy"}, {prefix: "mcp-", suffix: "-headless"}, {prefix: "mcp-"}},
	managers.ConfigMap:      nil, // see render.ParseConfigName
	managers.ServiceAccount: {{suffix: "-proxy-runner"}, {suffix: "-sa"}},
	managers.Role:           {{suffix: "-proxy-runner"}},
	managers.RoleBinding:    {{suffix: "-proxy-runner"}},
}

// candidates returns the names of the MCPServers that an object of that kind and name may be a child of.
func candidates(kind schema.GroupKind, name string) []string {
	if kind == managers.ConfigMap {
		if config, ok := render.ParseConfigName(name); ok {
			return []string{config.Server}
		}
		return nil
	}
	var owners []string
	for _, a := range affixes[kind] {
		owner, found := strings.CutPrefix(name, a.prefix)
		if !found {
			continue
		}
		if owner, found = strings.CutSuffix(owner, a.suffix); found && owner != "" {
			owners = append(owners, owner)
		}
	}
	return owners
}

// children returns the references of everything that is, or may be, made for an MCPServer.
func (c *Controller) children(server cache.ObjectName) []apply.ObjectRef {
	return append(fixed(server), c.caches.configs(server)...)
}

// fixed returns the references of everything that may be made for an MCPServer, but for ConfigMaps.
func fixed(server cache.ObjectName) []apply.ObjectRef {
	var refs []apply.ObjectRef
	for kind, forms := range affixes {
		for _, a := range forms {
			refs = append(refs, childRef(kind, server.Namespace, a.prefix+server.Name+a.suffix))
		}
	}
	return refs
}

func childRef(kind schema.GroupKind, namespace, name string) apply.ObjectRef {
	ref := apply.ObjectRef{Kind: kind}
	ref.Namespace, ref.Name = namespace, name
	return ref
}
