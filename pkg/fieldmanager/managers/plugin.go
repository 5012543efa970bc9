// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

// Plugin is the field manager of kubectl freehold. It acts for the user who runs it, and is not one of the operator's
// managers.
const Plugin = "kubectl-freehold"

// PluginWriter returns the writer of kubectl freehold. The Registry, which has the operator's writers, does not have it.
func PluginWriter() fieldmanager.Writer {
	return fieldmanager.Writer{
		Name: Plugin, Kind: MCPServer, Summary: "the annotations " + v1beta1.AnnotationTake + " and " + v1beta1.AnnotationYield,
		Claim: fieldmanager.Within(
			fieldmanager.Path("metadata", "annotations", v1beta1.AnnotationTake),
			fieldmanager.Path("metadata", "annotations", v1beta1.AnnotationYield),
		),
	}
}

// HandbackWriters returns the writers of kubectl freehold while it hands MCPServers back to ToolHive. For each object,
// they may own what the operator's writers may own, and of an MCPServer the restart that ToolHive's operator takes for
// answered, until the plugin has passed that on in the same run. It applies under its own name, and without force, the
// changes that ToolHive needs. The Registry does not have these writers either.
func HandbackWriters() []fieldmanager.Writer {
	type target struct {
		kind        schema.GroupKind
		subresource string
	}
	var writers []fieldmanager.Writer
	at := map[target]int{}
	for _, w := range Registry().Writers() {
		if len(w.Claim.Within) == 0 {
			continue
		}
		of := target{w.Kind, w.Subresource}
		i, known := at[of]
		if !known {
			i = len(writers)
			at[of] = i
			writers = append(writers, fieldmanager.Writer{
				Name: Plugin, Kind: w.Kind, Subresource: w.Subresource, Summary: "what is handed back to ToolHive, meanwhile",
			})
			if w.Kind == MCPServer && w.Subresource == "" {
				writers[i].Claim = fieldmanager.Within(fieldmanager.Path("metadata", "annotations", v1beta1.AnnotationLastProcessedRestart))
			}
		}
		// Where several writers share an object, a field that is not one writer's is another's.
		for _, path := range w.Claim.Within {
			if !writers[i].Claim.Covers(path) {
				writers[i].Claim.Within = append(writers[i].Claim.Within, path)
			}
		}
	}
	return writers
}
