// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"fmt"

	"github.com/freehold-dev/freehold/apis/toolhive/v1alpha1"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/authserver"
)

// Validate returns why a config cannot be used, a pointer to one of the kinds of this package but MCPGroup; nil when it can. Another
// type is an error.
func Validate(config any) error {
	switch config := config.(type) {
	case *v1beta1.MCPOIDCConfig:
		return ValidateOIDC(&config.Spec)
	case *v1beta1.MCPAuthzConfig:
		_, err := Authz(&config.Spec)
		return err
	case *v1beta1.MCPExternalAuthConfig:
		return ValidateExternalAuth(&config.Spec)
	case *v1beta1.MCPToolConfig:
		return ValidateTool(&config.Spec)
	case *v1beta1.MCPTelemetryConfig:
		return ValidateTelemetry(&config.Spec)
	case *v1alpha1.MCPWebhookConfig:
		return ValidateWebhook(&config.Spec)
	}
	return fmt.Errorf("%T is no configuration that an MCPServer can refer to", config)
}

// HashOf returns the hash of a config's spec; see Validate for the types.
func HashOf(config any) (string, error) {
	switch config := config.(type) {
	case *v1beta1.MCPOIDCConfig:
		return Hash(config.Spec)
	case *v1beta1.MCPAuthzConfig:
		return Hash(config.Spec)
	case *v1beta1.MCPExternalAuthConfig:
		return Hash(config.Spec)
	case *v1beta1.MCPToolConfig:
		return Hash(config.Spec)
	case *v1beta1.MCPTelemetryConfig:
		return Hash(config.Spec)
	case *v1alpha1.MCPWebhookConfig:
		return Hash(config.Spec)
	}
	return "", fmt.Errorf("%T is no configuration that an MCPServer can refer to", config)
}

// Advisories are conditions of a config that never make it invalid. They are about an embedded authorization server; any other config
// has none.
func Advisories(config any) []authserver.Advisory {
	external, ok := config.(*v1beta1.MCPExternalAuthConfig)
	if !ok || external.Spec.Type != v1beta1.ExternalAuthTypeEmbeddedAuthServer {
		return nil
	}
	return authserver.Advisories(external.Spec.EmbeddedAuthServer)
}

// StatusOf returns the status of a config, which is the object's own; nil for another type. See Validate for the types.
func StatusOf(config any) *v1beta1.ConfigStatus {
	switch config := config.(type) {
	case *v1beta1.MCPOIDCConfig:
		return &config.Status
	case *v1beta1.MCPAuthzConfig:
		return &config.Status
	case *v1beta1.MCPExternalAuthConfig:
		return &config.Status
	case *v1beta1.MCPToolConfig:
		return &config.Status
	case *v1beta1.MCPTelemetryConfig:
		return &config.Status
	case *v1alpha1.MCPWebhookConfig:
		return &config.Status
	}
	return nil
}
