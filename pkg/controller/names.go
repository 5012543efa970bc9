// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// fixed returns the references of everything that may be made for an MCPServer, but for what is named by its content.
func fixed(server cache.ObjectName) []apply.ObjectRef {
	var refs []apply.ObjectRef
	for _, child := range inventory.Children() {
		if !child.ByContent {
			refs = append(refs, child.Ref(server.Namespace, server.Name))
		}
	}
	return refs
}

func childRef(kind schema.GroupKind, namespace, name string) apply.ObjectRef {
	ref := apply.ObjectRef{Kind: kind}
	ref.Namespace, ref.Name = namespace, name
	return ref
}

func serverRef(key cache.ObjectName) apply.ObjectRef {
	return childRef(managers.MCPServer, key.Namespace, key.Name)
}
