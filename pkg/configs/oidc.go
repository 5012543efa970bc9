// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
)

var oidcKind = kind(
	Kind{Name: OIDC, Valid: v1beta1.ReasonConfigValid, Invalid: v1beta1.ReasonConfigInvalid}, toolhivev1beta1ac.MCPOIDCConfig,
	func(c *v1beta1.MCPOIDCConfig) *v1beta1.MCPOIDCConfigSpec { return &c.Spec }, func(c *v1beta1.MCPOIDCConfig) *v1beta1.ConfigStatus { return &c.Status },
	ValidateOIDC, func(spec *v1beta1.MCPOIDCConfigSpec) []string { return OIDCBundle(spec).configMaps() },
)

// OIDCConfigRef is spec.oidcConfigRef.
var OIDCConfigRef = refer(oidcKind, Reference{
	Field: "oidcConfigRef", Condition: v1beta1.ConditionOIDCConfigRefValidated,
	Valid: v1beta1.ReasonOIDCConfigRefValid, NotFound: v1beta1.ReasonOIDCConfigRefNotFound,
	Invalid: v1beta1.ReasonOIDCConfigRefNotValid, Unavailable: v1beta1.ReasonOIDCConfigRefError,
	Hash:     func(s *v1beta1.MCPServerStatus) *string { return &s.OIDCConfigHash },
	WithHash: (*toolhivev1beta1ac.MCPServerStatusApplyConfiguration).WithOIDCConfigHash,
}, func(s *v1beta1.MCPServerSpec) **v1beta1.MCPOIDCConfigReference { return &s.OIDCConfigRef },
	func(ref *v1beta1.MCPOIDCConfigReference) Named { return Named{OIDC, ref.Name} })

// ValidateOIDC returns why an MCPOIDCConfig cannot be used; nil when it can. Whether ConfigMaps and Secrets exist does not count.
func ValidateOIDC(spec *v1beta1.MCPOIDCConfigSpec) error {
	if err := readable(spec.UnknownFields, spec.Malformed); err != nil {
		return err
	}
	switch spec.Type {
	case v1beta1.MCPOIDCConfigTypeKubernetesServiceAccount:
		switch {
		case spec.KubernetesServiceAccount == nil:
			return errors.New("spec.kubernetesServiceAccount is missing; type kubernetesServiceAccount needs it")
		case spec.Inline != nil:
			return errors.New("spec.inline must not be set with type kubernetesServiceAccount")
		}
		return validateAccountOIDC(spec.KubernetesServiceAccount)
	case v1beta1.MCPOIDCConfigTypeInline:
		switch {
		case spec.Inline == nil:
			return errors.New("spec.inline is missing; type inline needs it")
		case spec.KubernetesServiceAccount != nil:
			return errors.New("spec.kubernetesServiceAccount must not be set with type inline")
		}
		return validateInlineOIDC(spec.Inline)
	default:
		return fmt.Errorf("spec.type is %q; it must be kubernetesServiceAccount or inline", spec.Type)
	}
}

func validateAccountOIDC(account *v1beta1.KubernetesServiceAccountOIDCConfig) error {
	for _, field := range []struct{ name, value string }{
		{"issuer", account.Issuer}, {"jwksUrl", account.JWKSURL}, {"introspectionUrl", account.IntrospectionURL},
	} {
		if err := validateURL("spec.kubernetesServiceAccount."+field.name, field.value, true); err != nil {
			return err
		}
	}
	return nil
}

func validateInlineOIDC(inline *v1beta1.InlineOIDCSharedConfig) error {
	if inline.Issuer == "" && inline.JWKSURL == "" {
		return errors.New("spec.inline has neither issuer nor jwksUrl; without one of them no token can be checked")
	}
	for _, field := range []struct{ name, value string }{
		{"issuer", inline.Issuer}, {"jwksUrl", inline.JWKSURL}, {"introspectionUrl", inline.IntrospectionURL},
	} {
		if err := validateURL("spec.inline."+field.name, field.value, inline.InsecureAllowHTTP); err != nil {
			return err
		}
	}
	if ref := inline.ClientSecretRef; ref != nil {
		if err := validateSecretKey("spec.inline.clientSecretRef", ref); err != nil {
			return err
		}
	}
	return validateBundle("spec.inline.caBundleRef", inline.CABundleRef, oidcBundleVolume)
}

// validateURL checks an address, if there is one. Its text is not repeated: it may hold a password.
func validateURL(field, address string, plain bool) error {
	if address == "" {
		return nil
	}
	parsed, err := url.Parse(address)
	switch {
	case err != nil:
		return fmt.Errorf("%s is not a URL", field)
	case parsed.Scheme == "http" && !plain:
		return fmt.Errorf("%s is plain http; use https, or set insecureAllowHTTP for tests", field)
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return fmt.Errorf("%s has the scheme %q; it must be https", field, parsed.Scheme)
	case parsed.Host == "":
		return fmt.Errorf("%s has no host", field)
	}
	return nil
}
