// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

var (
	runner044 = version.MustParseSemantic("0.44.0")
	runner062 = version.MustParseSemantic("0.62.0")
)

// Each field that an older proxyrunner ignores is refused, or noticed where that is harmless or the version is not known, and accepted from
// the first release on that knows it.
func TestFieldsThatOlderRunnersIgnoreAreRefusedOrNoticed(t *testing.T) {
	bundle := &v1beta1.CABundleSource{ConfigMapRef: &v1beta1.ConfigMapKeySelector{Name: "ca"}}
	ref := v1beta1.SecretKeyRef{Name: "as", Key: "k"}
	type spec = v1beta1.EmbeddedAuthServerConfig
	type oidc = v1beta1.OIDCUpstreamConfig
	type oauth2 = v1beta1.OAuth2UpstreamConfig
	tried := map[string]bool{}
	for _, c := range []struct {
		// path of the field below the root, since the first release that knows it; harmless says that there is a notice.
		path, since string
		harmless    bool
		change      func(*spec)
	}{
		{"inboundGrants", "0.47.0", false, func(s *spec) {
			s.InboundGrants = &v1beta1.InboundGrantsConfig{TokenExchange: &v1beta1.TokenExchangeInboundGrantConfig{}}
		}},
		{"upstreamProviders, which is empty,", "0.47.0", false, func(s *spec) {
			delegateSpec(func(*v1beta1.DelegateClientConfig) {})(s)
			s.UpstreamProviders = nil
		}},
		{"upstreamProviders[].oidcConfig.dcrConfig", "0.58.0", false, oidcSpec(func(o *oidc) { o.ClientID, o.DCRConfig = "", &v1beta1.DCRUpstreamConfig{} })},
		{"upstreamProviders[].caBundleRef", "0.47.0", false, oidcSpec(func(o *oidc) { o.CABundleRef = bundle })},
		{"upstreamProviders[].caBundleRef", "0.47.0", false, oauth2Spec(func(o *oauth2) { o.CABundleRef = bundle })},
		{"upstreamProviders[].additionalTokenParams", "0.58.0", false, oidcSpec(func(o *oidc) { o.AdditionalTokenParams = map[string]string{"a": "b"} })},
		{"upstreamProviders[].additionalTokenParams", "0.58.0", false, oauth2Spec(func(o *oauth2) { o.AdditionalTokenParams = map[string]string{"a": "b"} })},
		{"upstreamProviders[].omitScopeOnRefresh", "0.58.0", false, oidcSpec(func(o *oidc) { o.OmitScopeOnRefresh = true })},
		{"upstreamProviders[].omitScopeOnRefresh", "0.58.0", false, oauth2Spec(func(o *oauth2) { o.OmitScopeOnRefresh = true })},
		{"upstreamProviders[].oauth2Config.tokenEndpointAuthMethod", "0.58.0", false, oauth2Spec(func(o *oauth2) { o.TokenEndpointAuthMethod = "none" })},
		{"upstreamProviders[].dcrConfig.rotationKey", "0.58.0", true, dcrSpec(v1beta1.DCRUpstreamConfig{DiscoveryURL: "https://a.example.com", RotationKey: "r"})},
		{"upstreamProviders[].dcrConfig.registrationProbe", "0.58.0", true, dcrSpec(v1beta1.DCRUpstreamConfig{DiscoveryURL: "https://a.example.com", RegistrationProbe: "none"})},
		{"upstreamProviders[].dcrConfig.registrationProbeInterval", "0.58.0", true, dcrSpec(v1beta1.DCRUpstreamConfig{DiscoveryURL: "https://a.example.com", RegistrationProbeInterval: "5m"})},
		{"trustedIssuers[].caBundleRef", "0.47.0", false, trustedSpec(func(t *v1beta1.TrustedIssuerConfig) { t.CABundleRef, t.AllowMayAct = bundle, true })},
		{"trustedIssuers[].actorMatcher", "0.47.0", false, trustedSpec(func(t *v1beta1.TrustedIssuerConfig) { t.ActorMatcher = "true" })},
		{"trustedIssuers[].jwtBearerGrant", "0.47.0", false, assertionSpec(func(*v1beta1.JWTBearerGrantConfig) {})},
		{"tlsListener", "0.58.0", false, func(s *spec) {
			s.TLSListener = &v1beta1.TLSListenerConfig{CertificateSecretRef: ref, PrivateKeySecretRef: ref}
		}},
		{"allowPrivateKeyJWTRegistration", "0.47.0", true, func(s *spec) { s.AllowPrivateKeyJWTRegistration = true }},
		{"registrationRateLimit", "0.58.0", false, func(s *spec) { s.RegistrationRateLimit = &v1beta1.RateLimitBucket{MaxTokens: 4, RefillPeriod: "1s"} }},
		{"registrationRateLimit", "0.58.0", false, func(s *spec) { s.RegistrationRateLimit = &v1beta1.RateLimitBucket{MaxTokens: 5, RefillPeriod: "6s"} }},
		{"registrationRateLimit", "0.58.0", true, func(s *spec) { s.RegistrationRateLimit = &v1beta1.RateLimitBucket{MaxTokens: 5, RefillPeriod: "5s"} }},
		{"storage.maxDCRClients", "0.58.0", false, func(s *spec) { s.Storage = &v1beta1.AuthServerStorageConfig{MaxDCRClients: new(int32(9))} }},
	} {
		t.Run(c.path, func(t *testing.T) {
			tried[c.path] = true
			in := goodInput()
			c.change(in.Spec)
			first := version.MustParseSemantic(c.since)
			in.Runner = nil
			unknown, problems := Render(in)
			if unknown == nil {
				t.Fatalf("a proxyrunner of unknown version: %v", problems)
			}
			if n := unknown.Notices; len(n) != 1 || n[0].Reason != v1beta1.ReasonRunnerVersionUnknown ||
				!strings.HasPrefix(n[0].Message, root+"."+c.path+" ") || !strings.Contains(n[0].Message, "v"+c.since) {
				t.Errorf("a proxyrunner of unknown version: got %v, want one about %s before v%s", n, c.path, c.since)
			}
			for _, in.Runner = range []*version.Version{first, runner062} {
				if result, problems := Render(in); result == nil || len(result.Notices) > 0 {
					t.Errorf("proxyrunner %v: got %v and problems %v, want neither problem nor notice", in.Runner, result, problems)
				}
			}
			for _, in.Runner = range []*version.Version{runner044, first.WithPreRelease("rc.1")} {
				result, problems := Render(in)
				if c.harmless {
					if result == nil {
						t.Fatalf("proxyrunner %v: %v", in.Runner, problems)
					}
					problems = result.Notices
				} else if result != nil {
					t.Errorf("proxyrunner %v: not refused", in.Runner)
				}
				if len(problems) != 1 || problems[0].Reason != v1beta1.ReasonRunnerTooOld || !strings.HasPrefix(problems[0].Message, root+"."+c.path+" ") {
					t.Errorf("proxyrunner %v: got %v, want one about %s", in.Runner, problems, c.path)
				}
			}
		})
	}
	for _, f := range runnerFields {
		if !tried[f.path] {
			t.Errorf("%s is not tried", f.path)
		}
	}

	in := goodInput()
	in.Runner, in.Spec.Storage = runner044, &v1beta1.AuthServerStorageConfig{MaxDCRClients: new(int32(0))}
	if result, problems := Render(in); result == nil || len(result.Notices) > 0 {
		t.Errorf("any number of clients is what an older proxyrunner allows anyway: got %v and %v", result, problems)
	}
}

// TestEveryFieldHasARunner finds fields of the configuration of which nobody said since when the proxyrunner knows them.
func TestEveryFieldHasARunner(t *testing.T) {
	data, err := os.ReadFile("testdata/fields-v0.44.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Fields(string(data))
	newer := []string{
		"spiffeTrustDomains[]",                           // refused with any proxyrunner
		"trustedIssuers[].name",                          // for inboundGrants alone
		"upstreamProviders[].oidcConfig.allowPrivateIPs", // v0.44.0's proxyrunner knows it, and only the CRD did not
	}
	for _, f := range runnerFields {
		newer = append(newer, strings.TrimSuffix(f.path, ","))
	}
	provider := strings.NewReplacer(".oidcConfig", "", ".oauth2Config", "")
	fields := leaves(reflect.TypeFor[v1beta1.EmbeddedAuthServerConfig](), "")
	for _, field := range fields {
		if slices.Contains(known, field) {
			continue
		}
		if !slices.ContainsFunc(newer, func(path string) bool {
			return field == path || strings.HasPrefix(provider.Replace(field)+".", provider.Replace(path)+".")
		}) {
			t.Errorf("%s is neither in v0.44.0 nor in runnerFields", field)
		}
	}
	for _, field := range known {
		if !slices.Contains(fields, field) {
			t.Errorf("%s is in v0.44.0, and not in our types", field)
		}
	}
}

// leaves are the paths of a type's fields that have no fields of their own.
func leaves(typ reflect.Type, path string) []string {
	switch typ.Kind() {
	case reflect.Pointer:
		return leaves(typ.Elem(), path)
	case reflect.Slice:
		if typ.Elem().Kind() == reflect.Struct {
			return leaves(typ.Elem(), path+"[]")
		}
	case reflect.Struct:
		var list []string
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous && name == "":
				list = append(list, leaves(f.Type, path)...)
			case path == "":
				list = append(list, leaves(f.Type, name)...)
			default:
				list = append(list, leaves(f.Type, path+"."+name)...)
			}
		}
		return list
	}
	return []string{path}
}
