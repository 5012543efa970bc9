// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configs_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
)

// check compares an error with a part of its text; empty for no error.
func check(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got error %v, want none", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got error %v, want %q", err, want)
	}
}

func bundle(name string) *v1beta1.CABundleSource {
	return &v1beta1.CABundleSource{ConfigMapRef: &v1beta1.ConfigMapKeySelector{Name: name, Key: "ca.crt"}}
}

func TestOIDCIsValidated(t *testing.T) {
	inline := func(change func(*v1beta1.InlineOIDCSharedConfig)) v1beta1.MCPOIDCConfigSpec {
		config := &v1beta1.InlineOIDCSharedConfig{Issuer: "https://idp.example.com"}
		change(config)
		return v1beta1.MCPOIDCConfigSpec{Type: v1beta1.MCPOIDCConfigTypeInline, Inline: config}
	}
	for name, c := range map[string]struct {
		spec v1beta1.MCPOIDCConfigSpec
		want string
	}{
		"inline":            {inline(func(*v1beta1.InlineOIDCSharedConfig) {}), ""},
		"no type":           {v1beta1.MCPOIDCConfigSpec{}, `spec.type is ""`},
		"nothing inline":    {v1beta1.MCPOIDCConfigSpec{Type: v1beta1.MCPOIDCConfigTypeInline}, "spec.inline is missing"},
		"nothing of a kind": {v1beta1.MCPOIDCConfigSpec{Type: v1beta1.MCPOIDCConfigTypeKubernetesServiceAccount}, "spec.kubernetesServiceAccount is missing"},
		"both": {v1beta1.MCPOIDCConfigSpec{
			Type: v1beta1.MCPOIDCConfigTypeInline, Inline: &v1beta1.InlineOIDCSharedConfig{Issuer: "https://i"},
			KubernetesServiceAccount: &v1beta1.KubernetesServiceAccountOIDCConfig{},
		}, "must not be set with type inline"},
		"accounts": {v1beta1.MCPOIDCConfigSpec{
			Type: v1beta1.MCPOIDCConfigTypeKubernetesServiceAccount, KubernetesServiceAccount: &v1beta1.KubernetesServiceAccountOIDCConfig{},
		}, ""},
		"nobody to ask":     {inline(func(c *v1beta1.InlineOIDCSharedConfig) { c.Issuer = "" }), "neither issuer nor jwksUrl"},
		"keys alone":        {inline(func(c *v1beta1.InlineOIDCSharedConfig) { c.Issuer, c.JWKSURL = "", "https://k" }), ""},
		"plain issuer":      {inline(func(c *v1beta1.InlineOIDCSharedConfig) { c.Issuer = "http://i" }), "issuer is plain http"},
		"plain for tests":   {inline(func(c *v1beta1.InlineOIDCSharedConfig) { c.Issuer, c.InsecureAllowHTTP = "http://i", true }), ""},
		"keys not at a URL": {inline(func(c *v1beta1.InlineOIDCSharedConfig) { c.JWKSURL = "not a url" }), `jwksUrl has the scheme ""`},
		"no host":           {inline(func(c *v1beta1.InlineOIDCSharedConfig) { c.IntrospectionURL = "https:///x" }), "introspectionUrl has no host"},
		"secret": {inline(func(c *v1beta1.InlineOIDCSharedConfig) {
			c.ClientSecretRef = &v1beta1.SecretKeyRef{Name: "S", Key: "k"}
		}), "not the name of a Secret"},
		"bundle":           {inline(func(c *v1beta1.InlineOIDCSharedConfig) { c.CABundleRef = bundle("corp") }), ""},
		"bundle with dots": {inline(func(c *v1beta1.InlineOIDCSharedConfig) { c.CABundleRef = bundle("my.ca") }), "no volume can be called"},
		"long bundle":      {inline(func(c *v1beta1.InlineOIDCSharedConfig) { c.CABundleRef = bundle(strings.Repeat("a", 49)) }), "no volume can be called"},
		"bundle otel":      {inline(func(c *v1beta1.InlineOIDCSharedConfig) { c.CABundleRef = bundle("otel") }), "directory of telemetry's"},
		"unknown field": {v1beta1.MCPOIDCConfigSpec{
			Type: v1beta1.MCPOIDCConfigTypeInline, Inline: &v1beta1.InlineOIDCSharedConfig{Issuer: "https://i"}, UnknownFields: []string{"inline.new"},
		}, "does not know spec.inline.new"},
		"malformed": {v1beta1.MCPOIDCConfigSpec{Malformed: "type is of type number, not string"}, "cannot read the spec"},
	} {
		t.Run(name, func(t *testing.T) { check(t, configs.ValidateOIDC(&c.spec), c.want) })
	}
}

func TestAddressesAreNotRepeated(t *testing.T) {
	spec := v1beta1.MCPOIDCConfigSpec{Type: v1beta1.MCPOIDCConfigTypeInline, Inline: &v1beta1.InlineOIDCSharedConfig{Issuer: "ftp://user:pass%zz@idp"}}
	if err := configs.ValidateOIDC(&spec); err == nil || strings.Contains(err.Error(), "pass") {
		t.Errorf("got error %v", err)
	}
}

func TestAuthorizationIsValidated(t *testing.T) {
	for name, c := range map[string]struct{ kind, config, want string }{
		"cedar":      {"cedarv1", `{"policies":["permit(principal, action, resource);"]}`, ""},
		"point":      {"httpv1", `{"http":{"url":"https://pdp"},"claim_mapping":"mpe"}`, ""},
		"other type": {"opa", `{}`, `spec.type is "opa"`},
		"nothing":    {"cedarv1", "", "spec.config is missing"},
		"no policy":  {"cedarv1", `{}`, "there is no policy"},
		"no Cedar":   {"cedarv1", `{"policies":["allow everything"]}`, "policies[0] is not a policy in Cedar's language"},
		"no mapping": {"httpv1", `{"http":{"url":"https://pdp"}}`, "claim_mapping"},
		"upper case": {"cedarv1", `{"Policies":["permit(principal, action, resource);"]}`, "upper case"},
		"both cases": {
			"cedarv1", `{"Policies":["forbid(principal, action, resource);"],"policies":["permit(principal, action, resource);"]}`,
			`"Policies" and "policies" differ only in their case`,
		},
		"bad uid":     {"cedarv1", `{"policies":["permit(principal, action, resource);"],"entities_json":"[{}]"}`, "the entities are not Cedar's"},
		"other group": {"cedarv1", `{"policies":["permit(principal, action, resource);"],"group_entity_type":"A::B"}`, "group_entity_type"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := v1beta1.MCPAuthzConfigSpec{Type: c.kind, Config: runtime.RawExtension{Raw: []byte(c.config)}}
			authz, err := configs.Authz(&spec)
			check(t, err, c.want)
			if (authz == nil) != (c.want != "") {
				t.Errorf("got %v", authz)
			}
		})
	}
}

func TestExternalAuthIsValidated(t *testing.T) {
	exchange := &v1beta1.TokenExchangeConfig{TokenURL: "https://sts", Audience: "a"}
	for name, c := range map[string]struct {
		spec v1beta1.MCPExternalAuthConfigSpec
		want string
	}{
		"exchange":        {v1beta1.MCPExternalAuthConfigSpec{Type: "tokenExchange", TokenExchange: exchange}, ""},
		"missing":         {v1beta1.MCPExternalAuthConfigSpec{Type: "tokenExchange"}, "spec.tokenExchange is missing"},
		"other member":    {v1beta1.MCPExternalAuthConfigSpec{Type: "unauthenticated", TokenExchange: exchange}, "spec.tokenExchange must not be set"},
		"unauthenticated": {v1beta1.MCPExternalAuthConfigSpec{Type: "unauthenticated"}, ""},
		"unknown":         {v1beta1.MCPExternalAuthConfigSpec{Type: "magic"}, "not a type that ToolHive has"},
		"no address":      {v1beta1.MCPExternalAuthConfigSpec{Type: "tokenExchange", TokenExchange: &v1beta1.TokenExchangeConfig{Audience: "a"}}, "tokenUrl is missing"},
		"no audience":     {v1beta1.MCPExternalAuthConfigSpec{Type: "tokenExchange", TokenExchange: &v1beta1.TokenExchangeConfig{TokenURL: "https://sts"}}, "audience is missing"},
		"token type": {v1beta1.MCPExternalAuthConfigSpec{Type: "tokenExchange", TokenExchange: &v1beta1.TokenExchangeConfig{
			TokenURL: "https://sts", Audience: "a", SubjectTokenType: "saml",
		}}, "not a type of token"},
		"header":      {v1beta1.MCPExternalAuthConfigSpec{Type: "headerInjection", HeaderInjection: &v1beta1.HeaderInjectionConfig{}}, "headerName is missing"},
		"role":        {v1beta1.MCPExternalAuthConfigSpec{Type: "awsSts", AWSSts: &v1beta1.AWSStsConfig{Region: "eu"}}, "neither fallbackRoleArn nor roleMappings"},
		"auth server": {v1beta1.MCPExternalAuthConfigSpec{Type: "embeddedAuthServer", EmbeddedAuthServer: &v1beta1.EmbeddedAuthServerConfig{}}, "issuer"},
	} {
		t.Run(name, func(t *testing.T) { check(t, configs.ValidateExternalAuth(&c.spec), c.want) })
	}
	err := configs.ValidateExternalAuth(&v1beta1.MCPExternalAuthConfigSpec{Type: "obo", OBO: &v1beta1.OBOConfig{}})
	if !errors.Is(err, configs.ErrEnterprise) {
		t.Errorf("obo: %v", err)
	}
}

func TestTelemetryIsValidated(t *testing.T) {
	otel := func(change func(*v1beta1.MCPTelemetryOTelConfig)) v1beta1.MCPTelemetryConfigSpec {
		config := &v1beta1.MCPTelemetryOTelConfig{
			Enabled: true, Endpoint: "https://otel:4318", Tracing: &v1beta1.OpenTelemetryTracingConfig{Enabled: true, SamplingRate: "0.5"},
		}
		change(config)
		return v1beta1.MCPTelemetryConfigSpec{OpenTelemetry: config}
	}
	header := func(name string) v1beta1.SensitiveHeader {
		return v1beta1.SensitiveHeader{Name: name, SecretKeyRef: v1beta1.SecretKeyRef{Name: "s", Key: "k"}}
	}
	for name, c := range map[string]struct {
		spec v1beta1.MCPTelemetryConfigSpec
		want string
	}{
		"nothing":   {v1beta1.MCPTelemetryConfigSpec{}, ""},
		"traces":    {otel(func(*v1beta1.MCPTelemetryOTelConfig) {}), ""},
		"no signal": {otel(func(c *v1beta1.MCPTelemetryOTelConfig) { c.Tracing = nil }), "nothing to send"},
		"rate":      {otel(func(c *v1beta1.MCPTelemetryOTelConfig) { c.Tracing.SamplingRate = "2" }), "between 0 and 1"},
		"twice": {otel(func(c *v1beta1.MCPTelemetryOTelConfig) {
			c.Headers = map[string]string{"a": "1"}
			c.SensitiveHeaders = []v1beta1.SensitiveHeader{header("a")}
		}), "give it once"},
		"alike": {otel(func(c *v1beta1.MCPTelemetryOTelConfig) {
			c.SensitiveHeaders = []v1beta1.SensitiveHeader{header("x-a"), header("X_a")}
		}), "same variable"},
		"bundle":      {otel(func(c *v1beta1.MCPTelemetryOTelConfig) { c.CABundleRef = bundle("otel") }), ""},
		"both":        {otel(func(c *v1beta1.MCPTelemetryOTelConfig) { c.CABundleRef, c.Insecure = bundle("ca"), true }), "set only one"},
		"header name": {otel(func(c *v1beta1.MCPTelemetryOTelConfig) { c.SensitiveHeaders = []v1beta1.SensitiveHeader{header("")} }), "name is missing"},
	} {
		t.Run(name, func(t *testing.T) { check(t, configs.ValidateTelemetry(&c.spec), c.want) })
	}
}

func TestWebhooksAreValidated(t *testing.T) {
	hook := func(change func(*v1beta1.WebhookSpec)) v1beta1.MCPWebhookConfigSpec {
		webhook := v1beta1.WebhookSpec{Name: "w", URL: "https://hook.example.com"}
		change(&webhook)
		return v1beta1.MCPWebhookConfigSpec{Mutating: []v1beta1.WebhookSpec{webhook}}
	}
	ref := &v1beta1.SecretKeyRef{Name: "s", Key: "k"}
	for name, c := range map[string]struct {
		spec v1beta1.MCPWebhookConfigSpec
		want string
	}{
		"none":  {v1beta1.MCPWebhookConfigSpec{}, "no webhook"},
		"one":   {hook(func(*v1beta1.WebhookSpec) {}), ""},
		"plain": {hook(func(w *v1beta1.WebhookSpec) { w.URL = "http://hook" }), "use https"},
		"insecure": {hook(func(w *v1beta1.WebhookSpec) {
			w.URL, w.TLSConfig = "http://hook", &v1beta1.WebhookTLSConfig{InsecureSkipVerify: true}
		}), ""},
		"scheme": {hook(func(w *v1beta1.WebhookSpec) {
			w.URL, w.TLSConfig = "ftp://hook", &v1beta1.WebhookTLSConfig{InsecureSkipVerify: true}
		}), "does not speak"},
		"policy":  {hook(func(w *v1beta1.WebhookSpec) { w.FailurePolicy = "Ignore" }), "failurePolicy"},
		"timeout": {hook(func(w *v1beta1.WebhookSpec) { w.Timeout = "31s" }), "mutating[0].timeout is 31s"},
		"days":    {hook(func(w *v1beta1.WebhookSpec) { w.Timeout = "2d" }), "not a duration"},
		"no key":  {hook(func(w *v1beta1.WebhookSpec) { w.TLSConfig = &v1beta1.WebhookTLSConfig{ClientCertSecretRef: ref} }), "only one of"},
		"pair": {hook(func(w *v1beta1.WebhookSpec) {
			w.TLSConfig = &v1beta1.WebhookTLSConfig{ClientCertSecretRef: ref, ClientKeySecretRef: ref}
		}), ""},
	} {
		t.Run(name, func(t *testing.T) { check(t, configs.ValidateWebhook(&c.spec), c.want) })
	}
}

// The order of keys makes no difference, any value does.
func TestAHashIsOfValuesWhateverTheirOrder(t *testing.T) {
	hash := func(text string) string {
		h, err := configs.Hash(&v1beta1.MCPAuthzConfigSpec{Type: "cedarv1", Config: runtime.RawExtension{Raw: []byte(text)}})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if one, other := hash(`{"a":1,"b":12345678901234567}`), hash(`{"b": 12345678901234567, "a": 1}`); one != other {
		t.Errorf("%s and %s", one, other)
	}
	if one, other := hash(`{"b":12345678901234567}`), hash(`{"b":12345678901234568}`); one == other {
		t.Errorf("both are %s", one)
	}
}
