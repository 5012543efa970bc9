// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
)

var toolKind = kind(
	Kind{Name: Tool, Valid: v1beta1.ReasonValidationSucceeded, Invalid: v1beta1.ReasonValidationFailed}, toolhivev1beta1ac.MCPToolConfig,
	func(c *v1beta1.MCPToolConfig) *v1beta1.MCPToolConfigSpec { return &c.Spec }, func(c *v1beta1.MCPToolConfig) *v1beta1.ConfigStatus { return &c.Status },
	ValidateTool, none,
)

// ToolConfigRef is spec.toolConfigRef.
var ToolConfigRef = refer(toolKind, Reference{
	Field: "toolConfigRef", Condition: v1beta1.ConditionToolConfigRefValidated,
	Valid: v1beta1.ReasonToolConfigRefValid, NotFound: v1beta1.ReasonToolConfigRefNotFound,
	Invalid: v1beta1.ReasonToolConfigRefInvalid, Unavailable: v1beta1.ReasonToolConfigRefError,
	Hash:     func(s *v1beta1.MCPServerStatus) *string { return &s.ToolConfigHash },
	WithHash: (*toolhivev1beta1ac.MCPServerStatusApplyConfiguration).WithToolConfigHash,
}, func(s *v1beta1.MCPServerSpec) **v1beta1.ToolConfigRef { return &s.ToolConfigRef },
	func(ref *v1beta1.ToolConfigRef) Named { return Named{Tool, ref.Name} })

// ValidateTool returns why an MCPToolConfig cannot be read; nil when it can.
func ValidateTool(spec *v1beta1.MCPToolConfigSpec) error {
	return readable(spec.UnknownFields, spec.Malformed)
}
