// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// ReadReference reads an object that an MCPServer of a namespace refers to, by the name that apply.Reference has for it, such as
// mcpoidcconfig/corporate.
func (c *Clients) ReadReference(ctx context.Context, namespace, reference string) (metav1.Object, error) {
	word, name, _ := strings.Cut(reference, "/")
	for kind, objects := range c.Objects {
		if strings.EqualFold(word, kind.Kind) && (kind == managers.ConfigMap || managers.ConfigOf(kind) != nil) {
			ref := apply.NewObjectRef(kind, namespace, name)
			return apply.Read(ctx, ref, func(ctx context.Context) (metav1.Object, error) { return objects.Get(ctx, namespace, name) })
		}
	}
	return nil, fmt.Errorf("%s is not of a kind that MCPServers refer to", reference)
}
