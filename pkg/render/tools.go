// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// resolveTools says which tools clients see, and under which names.
func (r *renderer) resolveTools() {
	ref, found := refer(r, configs.ToolConfigRef)
	if ref == nil || !r.usable(ref, func() error { return checkTools(&found.Spec) }) {
		return
	}
	spec := &found.Spec
	r.proxy.filter = spec.ToolsFilter
	if len(spec.ToolsOverride) > 0 {
		r.proxy.overrides = map[string]runconfig.ToolOverride{}
	}
	names, annotated := map[string]string{}, false
	for _, actual := range slices.Sorted(maps.Keys(spec.ToolsOverride)) {
		override := spec.ToolsOverride[actual]
		r.proxy.overrides[actual] = runconfig.ToolOverride{Name: override.Name, Description: override.Description}
		annotated = annotated || override.Annotations != nil
		if override.Name == "" {
			continue
		}
		if other, taken := names[override.Name]; taken {
			r.amend(ref, "it calls both %s and %s %s, so clients cannot tell which they call", quote(other), quote(actual), quote(override.Name))
		}
		names[override.Name] = actual
	}
	if annotated {
		r.amend(ref, "annotations of tools in it have no effect: the proxyrunner does not change them")
	}
	if len(spec.ToolsFilter) == 0 {
		r.amend(ref, "it has no toolsFilter, so clients see all tools")
	}
}

// checkTools finds settings with which the proxyrunner does not start.
func checkTools(spec *v1beta1.MCPToolConfigSpec) error {
	if err := configs.ValidateTool(spec); err != nil {
		return err
	}
	for i, name := range spec.ToolsFilter {
		if name == "" || strings.ContainsAny(name, ",\r\n") {
			return fmt.Errorf("spec.toolsFilter[%d] is %q; it must be the name of a tool, without commas and line breaks", i, name)
		}
	}
	for _, actual := range slices.Sorted(maps.Keys(spec.ToolsOverride)) {
		if override := spec.ToolsOverride[actual]; override.Name == "" && override.Description == "" {
			return fmt.Errorf("spec.toolsOverride[%s] has neither a name nor a description; give it one, or remove it", quote(actual))
		}
	}
	return nil
}
