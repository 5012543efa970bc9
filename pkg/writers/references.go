// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers

import (
	"fmt"
	"strconv"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
)

// References returns, of all objects that an MCPServer refers to, those that a child is rendered from besides the MCPServer, as
// its writer records them. It is nil for children that do not depend on references.
func References(child *inventory.Child, all []render.Reference) apply.References {
	if child != inventory.RunConfig && child != inventory.Proxy {
		return nil
	}
	references := make(apply.References, 0, len(all))
	for _, ref := range all {
		references = append(references, apply.Reference(ref))
	}
	return references
}

// Enforced says which configuration a proxy keeps while its references cannot be used, from the annotations of its Deployment.
// exists reports whether there is one.
func Enforced(annotations map[string]string, exists bool) string {
	if !exists {
		return "No proxy is made until that is fixed."
	}
	text := "The proxy keeps the configuration that it has"
	if source := annotations[v1beta1.AnnotationSource]; source != "" {
		text += fmt.Sprintf(", made from generation %s of the MCPServer", generationIn(source))
	}
	if references := describeReferences(annotations[v1beta1.AnnotationReferences]); references != "" {
		text += " and " + references
	}
	return text + "."
}

// generationIn returns the generation in a source annotation.
func generationIn(source string) string {
	written, ok := apply.ParseSource(source)
	if !ok {
		return "unknown"
	}
	return strconv.FormatInt(written.Generation, 10)
}

// describeReferences puts an annotation about references into words.
func describeReferences(annotation string) string {
	references, _ := apply.ParseReferences(annotation)
	said := make([]string, 0, len(references))
	for _, ref := range references {
		if ref.Generation > 0 {
			said = append(said, fmt.Sprintf("generation %d of %s", ref.Generation, ref.Name))
		} else {
			said = append(said, fmt.Sprintf("version %s of %s", ref.ResourceVersion, ref.Name))
		}
	}
	return status.List(said)
}
