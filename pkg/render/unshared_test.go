// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
)

// What pods of an authorization server do not share comes with the result, whatever their number, for it may be set by others.
func TestWhatAnAuthorizationServerDoesNotShareComesWithTheResult(t *testing.T) {
	in := wholeReferences()
	if result := mustRender(t, in, Options{}); result.Unshared != "" {
		t.Errorf("without an authorization server: %q", result.Unshared)
	}
	embedAuthServer(&in)
	configs.OIDCConfigRef.In(in.References.Objects).Spec.Inline.Issuer += "/"
	result := mustRender(t, in, Options{})
	if len(result.Held) > 0 || !strings.Contains(result.Unshared, "has clients and sessions and a signing key and an HMAC secret of its own") {
		t.Errorf("%q; held: %+v", result.Unshared, result.Held)
	}
	if got := noticesOf(result, v1beta1.ConditionExternalAuthConfigValidated); strings.Contains(got, "replicas") || !strings.Contains(got, `spec.oidcConfigRef is "https://mcp.example.com/"`) {
		t.Errorf("notice %q", got)
	}
}

// embedAuthServer makes the proxy of an input with all references an authorization server.
func embedAuthServer(in *Input) {
	const address = "https://mcp.example.com"
	in.Server.Spec.OIDCConfigRef.Audience, in.Server.Spec.OIDCConfigRef.ResourceURL = address, address
	configs.OIDCConfigRef.In(in.References.Objects).Spec.Inline.Issuer = address
	configs.ExternalAuthConfigRef.In(in.References.Objects).Spec = v1beta1.MCPExternalAuthConfigSpec{
		Type: v1beta1.ExternalAuthTypeEmbeddedAuthServer, EmbeddedAuthServer: &v1beta1.EmbeddedAuthServerConfig{
			Issuer: address, UpstreamProviders: []v1beta1.UpstreamProviderConfig{{
				Name: "idp", Type: v1beta1.UpstreamProviderTypeOIDC,
				OIDCConfig: &v1beta1.OIDCUpstreamConfig{IssuerURL: "https://idp.example.com", ClientID: "c"},
			}},
		},
	}
}
