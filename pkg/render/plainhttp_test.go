// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
)

// The proxyrunner requests keys by https alone. Where it could accept no token, the proxy is held; what it compares only may be plain http.
func TestPlainHTTPHoldsAProxyThatCouldAcceptNoToken(t *testing.T) {
	yes := "INSECURE_DISABLE_URL_VALIDATION"
	for name, c := range map[string]struct {
		account v1beta1.KubernetesServiceAccountOIDCConfig
		change  func(*Input)
		// held and notice are parts of a message; empty for none.
		held, notice string
	}{
		"the cluster":                    {},
		"an issuer that is compared":     {account: v1beta1.KubernetesServiceAccountOIDCConfig{Issuer: "http://idp", JWKSURL: "https://idp/keys"}},
		"an issuer that is asked":        {account: v1beta1.KubernetesServiceAccountOIDCConfig{Issuer: "http://idp"}, held: "issuer is plain http"},
		"keys":                           {account: v1beta1.KubernetesServiceAccountOIDCConfig{JWKSURL: "http://idp/keys"}, held: "jwksUrl is plain http"},
		"introspection":                  {account: v1beta1.KubernetesServiceAccountOIDCConfig{IntrospectionURL: "http://idp/ask"}},
		"an issuer beside introspection": {account: v1beta1.KubernetesServiceAccountOIDCConfig{Issuer: "http://idp", IntrospectionURL: "http://idp/ask"}, held: "issuer is plain http"},
		"keys beside introspection": {
			account: v1beta1.KubernetesServiceAccountOIDCConfig{JWKSURL: "http://idp/keys", IntrospectionURL: "http://idp/ask"}, notice: "its jwksUrl is plain http",
		},
		"a proxyrunner that is told not to mind": {
			account: v1beta1.KubernetesServiceAccountOIDCConfig{JWKSURL: "http://idp/keys"},
			change: func(in *Input) {
				in.Server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
					Env: []v1beta1.EnvVar{{Name: yes, Value: "false"}, {Name: yes, Value: "True"}},
				}}
			},
		},
		"an authorization server in the proxy, which has the keys": {
			account: v1beta1.KubernetesServiceAccountOIDCConfig{Issuer: "http://localhost", JWKSURL: "http://localhost/keys"},
			change: func(in *Input) {
				in.Server.Spec.ExternalAuthConfigRef, in.Server.Spec.AuthServerRef = nil, &v1beta1.AuthServerRef{Name: "r"}
				in.References.Objects["authServerRef"] = configs.ExternalAuthConfigRef.In(in.References.Objects).DeepCopy()
				configs.AuthServerRef.In(in.References.Objects).Spec = v1beta1.MCPExternalAuthConfigSpec{
					Type: v1beta1.ExternalAuthTypeEmbeddedAuthServer, EmbeddedAuthServer: &v1beta1.EmbeddedAuthServerConfig{
						Issuer: "http://localhost", UpstreamProviders: []v1beta1.UpstreamProviderConfig{{
							Name: "idp", Type: v1beta1.UpstreamProviderTypeOIDC,
							OIDCConfig: &v1beta1.OIDCUpstreamConfig{IssuerURL: "https://idp.example.com", ClientID: "c"},
						}},
					},
				}
				in.Server.Spec.OIDCConfigRef.Audience, in.Server.Spec.OIDCConfigRef.ResourceURL = "http://localhost", "http://localhost"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := wholeReferences()
			configs.OIDCConfigRef.In(in.References.Objects).Spec = v1beta1.MCPOIDCConfigSpec{
				Type: v1beta1.MCPOIDCConfigTypeKubernetesServiceAccount, KubernetesServiceAccount: &c.account,
			}
			if c.change != nil {
				c.change(&in)
			}
			result := mustRender(t, in, Options{})
			of := func(p Problem) bool {
				return p.Condition == v1beta1.ConditionOIDCConfigRefValidated && p.Reason == v1beta1.ReasonOIDCConfigRefNotValid && strings.Contains(p.Message, c.held)
			}
			if c.held == "" && len(result.Held) > 0 || c.held != "" && !slices.ContainsFunc(result.Held, of) {
				t.Errorf("held: %+v, want %q", result.Held, c.held)
			}
			got := noticesOf(result, v1beta1.ConditionOIDCConfigRefValidated)
			if !strings.Contains(got, c.notice) || c.notice == "" && strings.Contains(got, "plain http") {
				t.Errorf("notice %q, want %q", got, c.notice)
			}
		})
	}
}
