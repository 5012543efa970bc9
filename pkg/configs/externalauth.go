// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/authserver"
)

var externalAuthKind = kind(
	Kind{Name: ExternalAuth, Valid: v1beta1.ReasonValidationSucceeded, Invalid: v1beta1.ReasonValidationFailed}, toolhivev1beta1ac.MCPExternalAuthConfig,
	func(c *v1beta1.MCPExternalAuthConfig) *v1beta1.MCPExternalAuthConfigSpec { return &c.Spec }, func(c *v1beta1.MCPExternalAuthConfig) *v1beta1.ConfigStatus { return &c.Status },
	ValidateExternalAuth, func(spec *v1beta1.MCPExternalAuthConfigSpec) []string {
		if spec.EmbeddedAuthServer == nil {
			return nil
		}
		return authserver.ConfigMaps(spec.EmbeddedAuthServer)
	},
)

// ExternalAuthConfigRef is spec.externalAuthConfigRef.
var ExternalAuthConfigRef = refer(externalAuthKind, Reference{
	Field: "externalAuthConfigRef", Condition: v1beta1.ConditionExternalAuthConfigValidated,
	Valid: v1beta1.ReasonExternalAuthConfigValid, NotFound: v1beta1.ReasonExternalAuthConfigNotFound,
	Invalid: v1beta1.ReasonInvalidExternalAuthConfig, Unavailable: v1beta1.ReasonExternalAuthConfigError,
	Hash:     func(s *v1beta1.MCPServerStatus) *string { return &s.ExternalAuthConfigHash },
	WithHash: (*toolhivev1beta1ac.MCPServerStatusApplyConfiguration).WithExternalAuthConfigHash,
}, func(s *v1beta1.MCPServerSpec) **v1beta1.ExternalAuthConfigRef { return &s.ExternalAuthConfigRef },
	func(ref *v1beta1.ExternalAuthConfigRef) Named { return Named{ExternalAuth, ref.Name} })

// AuthServerRef is spec.authServerRef, which has a field for the kind.
var AuthServerRef = refer(externalAuthKind, Reference{
	Field: "authServerRef", Condition: v1beta1.ConditionAuthServerRefValidated,
	Valid: v1beta1.ReasonAuthServerRefValid, NotFound: v1beta1.ReasonAuthServerRefNotFound,
	Invalid: v1beta1.ReasonAuthServerRefInvalidConfig, Unavailable: v1beta1.ReasonAuthServerRefFetchError,
	Hash:     func(s *v1beta1.MCPServerStatus) *string { return &s.AuthServerConfigHash },
	WithHash: (*toolhivev1beta1ac.MCPServerStatusApplyConfiguration).WithAuthServerConfigHash,
}, func(s *v1beta1.MCPServerSpec) **v1beta1.AuthServerRef { return &s.AuthServerRef },
	func(ref *v1beta1.AuthServerRef) Named { return Named{cmp.Or(ref.Kind, ExternalAuth), ref.Name} })

// ErrEnterprise is the reason why an MCPExternalAuthConfig of type obo cannot be used.
var ErrEnterprise = errors.New("spec.type obo needs ToolHive's enterprise edition, whose proxyrunner Freehold does not know")

// tokenTypePrefix is that of the URNs of token types, RFC 8693 section 3.
const tokenTypePrefix = "urn:ietf:params:oauth:token-type:"

// SubjectTokenType returns the URN of a type of tokens, which may be given by its last part alone. Empty stays empty. The error
// says that there is no such type.
func SubjectTokenType(name string) (urn string, err error) {
	switch name {
	case "":
		return "", nil
	case "access_token", "id_token", "jwt":
		return tokenTypePrefix + name, nil
	case tokenTypePrefix + "access_token", tokenTypePrefix + "id_token", tokenTypePrefix + "jwt":
		return name, nil
	}
	return "", fmt.Errorf("%q is not a type of token; give access_token, id_token or jwt", name)
}

// ValidateExternalAuth returns why an MCPExternalAuthConfig cannot be used; nil when it can. Whether an MCPServer has a use for its
// type does not count.
func ValidateExternalAuth(spec *v1beta1.MCPExternalAuthConfigSpec) error {
	if err := readable(spec.UnknownFields, spec.Malformed); err != nil {
		return err
	}
	members := []struct {
		name v1beta1.ExternalAuthType
		set  bool
	}{
		{v1beta1.ExternalAuthTypeTokenExchange, spec.TokenExchange != nil},
		{v1beta1.ExternalAuthTypeHeaderInjection, spec.HeaderInjection != nil},
		{v1beta1.ExternalAuthTypeBearerToken, spec.BearerToken != nil},
		{v1beta1.ExternalAuthTypeUnauthenticated, false},
		{v1beta1.ExternalAuthTypeEmbeddedAuthServer, spec.EmbeddedAuthServer != nil},
		{v1beta1.ExternalAuthTypeAWSSts, spec.AWSSts != nil},
		{v1beta1.ExternalAuthTypeUpstreamInject, spec.UpstreamInject != nil},
		{v1beta1.ExternalAuthTypeOBO, spec.OBO != nil},
		{v1beta1.ExternalAuthTypeXAA, spec.XAA != nil},
	}
	known := false
	for _, member := range members {
		switch {
		case member.name == spec.Type:
			known = true
			if !member.set && member.name != v1beta1.ExternalAuthTypeUnauthenticated {
				return fmt.Errorf("spec.%s is missing; type %s needs it", member.name, spec.Type)
			}
		case member.set:
			return fmt.Errorf("spec.%s must not be set with type %s", member.name, spec.Type)
		}
	}
	if !known {
		return fmt.Errorf("spec.type %q is not a type that ToolHive has", spec.Type)
	}
	switch spec.Type {
	case v1beta1.ExternalAuthTypeTokenExchange:
		return validateTokenExchange(spec.TokenExchange)
	case v1beta1.ExternalAuthTypeHeaderInjection:
		if spec.HeaderInjection.HeaderName == "" {
			return errors.New("spec.headerInjection.headerName is missing")
		}
	case v1beta1.ExternalAuthTypeEmbeddedAuthServer:
		return authserver.Validate(spec.EmbeddedAuthServer)
	case v1beta1.ExternalAuthTypeAWSSts:
		return validateAWSSts(spec.AWSSts)
	case v1beta1.ExternalAuthTypeOBO:
		return ErrEnterprise
	}
	return nil
}

func validateTokenExchange(exchange *v1beta1.TokenExchangeConfig) error {
	const field = "spec.tokenExchange"
	if exchange.TokenURL == "" {
		return fmt.Errorf("%s.tokenUrl is missing", field)
	}
	if err := validateURL(field+".tokenUrl", exchange.TokenURL, true); err != nil {
		return err
	}
	if exchange.Audience == "" {
		return fmt.Errorf("%s.audience is missing", field)
	}
	if _, err := SubjectTokenType(exchange.SubjectTokenType); err != nil {
		return fmt.Errorf("%s.subjectTokenType %w", field, err)
	}
	if ref := exchange.ClientSecretRef; ref != nil {
		return validateSecretKey(field+".clientSecretRef", ref)
	}
	return nil
}

func validateAWSSts(sts *v1beta1.AWSStsConfig) error {
	if sts.FallbackRoleArn == "" && len(sts.RoleMappings) == 0 {
		return errors.New("spec.awsSts has neither fallbackRoleArn nor roleMappings; one of them says which role is taken")
	}
	for i, mapping := range sts.RoleMappings {
		if (mapping.Claim == "") == (mapping.Matcher == "") {
			return fmt.Errorf("spec.awsSts.roleMappings[%d] must have one of claim and matcher", i)
		}
	}
	return nil
}
