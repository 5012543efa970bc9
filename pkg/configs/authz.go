// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

var authzKind = kind(
	Kind{Name: AuthzConfig, Valid: v1beta1.ReasonConfigValid, Invalid: v1beta1.ReasonConfigInvalid}, toolhivev1beta1ac.MCPAuthzConfig,
	func(c *v1beta1.MCPAuthzConfig) *v1beta1.MCPAuthzConfigSpec { return &c.Spec }, func(c *v1beta1.MCPAuthzConfig) *v1beta1.ConfigStatus { return &c.Status },
	func(spec *v1beta1.MCPAuthzConfigSpec) error { _, err := Authz(spec); return err }, none,
)

// AuthzConfigRef is spec.authzConfigRef.
var AuthzConfigRef = refer(authzKind, Reference{
	Field: "authzConfigRef", Condition: v1beta1.ConditionAuthzConfigRefValidated,
	Valid: v1beta1.ReasonAuthzConfigRefValid, NotFound: v1beta1.ReasonAuthzConfigRefNotFound,
	Invalid: v1beta1.ReasonAuthzConfigRefNotValid, Unavailable: v1beta1.ReasonAuthzConfigRefError,
	Hash:     func(s *v1beta1.MCPServerStatus) *string { return &s.AuthzConfigHash },
	WithHash: (*toolhivev1beta1ac.MCPServerStatusApplyConfiguration).WithAuthzConfigHash,
}, func(s *v1beta1.MCPServerSpec) **v1beta1.MCPAuthzConfigReference { return &s.AuthzConfigRef },
	func(ref *v1beta1.MCPAuthzConfigReference) Named { return Named{AuthzConfig, ref.Name} })

// blocks are the keys under which an authorization configuration holds the part for its type.
var blocks = map[string]string{runconfig.AuthzTypeCedar: "cedar", runconfig.AuthzTypeHTTP: "pdp"}

// Authz returns the whole authorization configuration of an MCPAuthzConfig, with sorted keys. The error says why it cannot be
// used.
func Authz(spec *v1beta1.MCPAuthzConfigSpec) (*runconfig.Authz, error) {
	if err := readable(spec.UnknownFields, spec.Malformed); err != nil {
		return nil, err
	}
	block, known := blocks[spec.Type]
	switch {
	case !known:
		return nil, fmt.Errorf("spec.type is %q; it must be %s or %s", spec.Type, runconfig.AuthzTypeCedar, runconfig.AuthzTypeHTTP)
	case len(spec.Config.Raw) == 0:
		return nil, errors.New("spec.config is missing")
	}
	document, err := json.Marshal(map[string]any{
		"version": runconfig.AuthzVersion, "type": spec.Type, block: json.RawMessage(spec.Config.Raw),
	})
	if err != nil {
		return nil, errors.New("spec.config is not JSON")
	}
	authz, err := runconfig.ParseAuthz(string(document), runconfig.ClaimMapping{})
	if err != nil {
		return nil, fmt.Errorf("spec.config cannot be used: %w", err)
	}
	return authz, nil
}
