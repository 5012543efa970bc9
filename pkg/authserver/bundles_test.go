// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

func bundleRef(name, key string) *v1beta1.CABundleSource {
	return &v1beta1.CABundleSource{ConfigMapRef: &v1beta1.ConfigMapKeySelector{Name: name, Key: key}}
}

func TestUnusableBundlesAreRefused(t *testing.T) {
	optional := bundleRef("ca", "ca.crt")
	optional.ConfigMapRef.Optional = new(true)
	for _, c := range []struct {
		want string
		ref  *v1beta1.CABundleSource
	}{
		{"is optional", optional},
		{`names the ConfigMap "gone", which does not exist`, bundleRef("gone", "ca.crt")},
		{`names the key "gone" of the ConfigMap "ca", which has no such key`, bundleRef("ca", "gone")},
		{`names the key "empty" of the ConfigMap "ca", which is empty`, bundleRef("ca", "empty")},
		{`names the key "text" of the ConfigMap "ca", which holds something that is not PEM`, bundleRef("ca", "text")},
		{`names the key "key" of the ConfigMap "ca", which holds a private key`, bundleRef("ca", "key")},
		{`names the key "request" of the ConfigMap "ca", whose PEM block 1 is not a certificate`, bundleRef("ca", "request")},
		{`names the key "broken" of the ConfigMap "ca", whose PEM block 1 cannot be read`, bundleRef("ca", "broken")},
		{`names the key "headers" of the ConfigMap "ca", whose PEM block 1 has headers`, bundleRef("ca", "headers")},
	} {
		for field, change := range map[string]func(*v1beta1.EmbeddedAuthServerConfig){
			".upstreamProviders[0].oidcConfig.caBundleRef ":   oidcSpec(func(o *v1beta1.OIDCUpstreamConfig) { o.CABundleRef = c.ref }),
			".upstreamProviders[0].oauth2Config.caBundleRef ": oauth2Spec(func(o *v1beta1.OAuth2UpstreamConfig) { o.CABundleRef = c.ref }),
			".trustedIssuers[0].caBundleRef ":                 trustedSpec(func(t *v1beta1.TrustedIssuerConfig) { t.CABundleRef = c.ref }),
		} {
			in := goodInput()
			change(in.Spec)
			if err := Validate(in.Spec); err != nil {
				t.Errorf("the configuration alone is not valid: %v", err)
			}
			result, problems := Render(in)
			if result != nil || len(problems) != 1 || problems[0].Reason != v1beta1.ReasonInvalidCABundle || !strings.HasPrefix(problems[0].Message, root+field+c.want) {
				t.Errorf("got %v and %v, want %s: %s%s%s…", result, problems, v1beta1.ReasonInvalidCABundle, root, field, c.want)
			}
		}
	}
}

// The recipe, and what counts for it.
func TestTheChecksumIsOfTheBundlesThatAreUsed(t *testing.T) {
	two := bundleMaps()["ca"].Data["two"]
	sum := func(parts ...string) string {
		digest := sha256.Sum256([]byte(strings.Join(parts, "\x00") + "\x00"))
		return hex.EncodeToString(digest[:])
	}
	spec := func(upstream *v1beta1.CABundleSource, issuers ...*v1beta1.CABundleSource) func(*Input) {
		return func(in *Input) {
			oidcSpec(func(o *v1beta1.OIDCUpstreamConfig) { o.CABundleRef = upstream })(in.Spec)
			for i, ref := range issuers {
				in.Spec.TrustedIssuers = append(in.Spec.TrustedIssuers, v1beta1.TrustedIssuerConfig{
					IssuerURL: "https://" + string(rune('a'+i)) + ".example.com", ExpectedAudience: "a", AllowedDelegateClients: []string{"*"}, CABundleRef: ref,
				})
			}
		}
	}
	for name, c := range map[string]struct {
		want   string
		change func(*Input)
	}{
		"none":                  {"", spec(nil, nil)},
		"upstream":              {sum(certificateA), spec(bundleRef("ca", "ca.crt"))},
		"key by default":        {sum(certificateA), spec(bundleRef("ca", ""))},
		"binary":                {sum(certificateB), spec(bundleRef("binary", "ca.crt"))},
		"issuer":                {sum("trustedIssuers", certificateA), spec(nil, bundleRef("ca", ""))},
		"issuers, one without":  {sum("trustedIssuers", certificateA, certificateB), spec(nil, bundleRef("ca", ""), nil, bundleRef("binary", ""))},
		"issuers swapped":       {sum("trustedIssuers", certificateB, certificateA), spec(nil, bundleRef("binary", ""), bundleRef("ca", ""))},
		"both":                  {sum(two, "trustedIssuers", certificateA), spec(bundleRef("ca", "two"), bundleRef("ca", "ca.crt"))},
		"both, the same bundle": {sum(certificateA, "trustedIssuers", certificateA), spec(bundleRef("ca", ""), bundleRef("ca", ""))},
		"another key changed": {sum(certificateA), func(in *Input) {
			spec(bundleRef("ca", ""))(in)
			in.Bundles["ca"].Data["text"], in.Bundles["ca"].Labels = "changed", map[string]string{"a": "b"}
		}},
		"data before binaryData": {sum(certificateA), func(in *Input) {
			spec(bundleRef("ca", ""))(in)
			in.Bundles["ca"].BinaryData = map[string][]byte{"ca.crt": []byte(certificateB)}
		}},
		"another ConfigMap with the same bytes": {sum(certificateA), func(in *Input) {
			spec(bundleRef("copy", ""))(in)
			in.Bundles["copy"] = &corev1.ConfigMap{Data: map[string]string{"ca.crt": certificateA}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := goodInput()
			c.change(&in)
			result, problems := Render(in)
			if result == nil {
				t.Fatal(problems)
			}
			if result.CAChecksum != c.want {
				t.Errorf("got %q, want %q", result.CAChecksum, c.want)
			}
		})
	}
	// From the text of the recipe, once worked out by hand: printf 'trustedIssuers\0x\0' | sha256sum
	if got, want := sum("trustedIssuers", "x"), "d26cd31ae8cf5053947ef129d9ca3519586e7adac3eff584342428fd71acde28"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Volumes and files of bundles are named after the position in the configuration, gaps left.
func TestBundlesAreNamedAfterTheirPositions(t *testing.T) {
	in := goodInput()
	in.Spec.TrustedIssuers = []v1beta1.TrustedIssuerConfig{
		{IssuerURL: "https://a.example.com", ExpectedAudience: "a", AllowedDelegateClients: []string{"*"}},
		{IssuerURL: "https://b.example.com", ExpectedAudience: "a", AllowedDelegateClients: []string{"*"}, CABundleRef: bundleRef("binary", "")},
	}
	result, problems := Render(in)
	if result == nil {
		t.Fatal(problems)
	}
	volumes, err := json.Marshal(result.Volumes)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`[{"name":"authserver-issuer-ca-1","configMap":{"name":"binary","items":[{"key":"ca.crt","path":"ca.crt"}]}}]`, string(volumes)); diff != "" {
		t.Errorf("the volumes differ (-want +got):\n%s", diff)
	}
	if got := result.Document.TrustedIssuers[1].CAFilePath; got != "/etc/toolhive/authserver/issuer-ca/1/ca.crt" || result.Document.TrustedIssuers[0].CAFilePath != "" {
		t.Errorf("got %q", got)
	}
}

func TestEachSecretAndConfigMapIsNamedOnce(t *testing.T) {
	ref := func(name string) v1beta1.SecretKeyRef { return v1beta1.SecretKeyRef{Name: name, Key: "k"} }
	in := goodInput()
	redisSpec(func(r *v1beta1.RedisStorageConfig) {
		r.ACLUserConfig = v1beta1.RedisACLUserConfig{UsernameSecretRef: new(ref("user")), PasswordSecretRef: ref("password")}
		r.TLS, r.SentinelTLS = &v1beta1.RedisTLSConfig{CACertSecretRef: new(ref("redis"))}, &v1beta1.RedisTLSConfig{CACertSecretRef: new(ref("sentinel"))}
	})(in.Spec)
	oidcSpec(func(o *v1beta1.OIDCUpstreamConfig) {
		o.ClientSecretRef, o.CABundleRef = new(ref("client")), bundleRef("z", "")
	})(in.Spec)
	dcr := v1beta1.UpstreamProviderConfig{Name: "dcr", Type: "oauth2", OAuth2Config: &v1beta1.OAuth2UpstreamConfig{
		DCRConfig: &v1beta1.DCRUpstreamConfig{InitialAccessTokenRef: new(ref("token"))}, CABundleRef: bundleRef("a", ""),
	}}
	in.Spec.UpstreamProviders = append(in.Spec.UpstreamProviders, dcr)
	in.Spec.SigningKeySecretRefs = []v1beta1.SecretKeyRef{ref("sign"), ref("sign")}
	in.Spec.HMACSecretRefs = []v1beta1.SecretKeyRef{ref("hmac")}
	in.Spec.TLSListener = &v1beta1.TLSListenerConfig{CertificateSecretRef: ref("cert"), PrivateKeySecretRef: ref("key")}
	in.Spec.TrustedIssuers = []v1beta1.TrustedIssuerConfig{{CABundleRef: bundleRef("z", "other")}, {CABundleRef: &v1beta1.CABundleSource{}}}
	delegateSpec(func(d *v1beta1.DelegateClientConfig) { d.ClientSecretRef = ref("delegate") })(in.Spec)

	if got, want := strings.Join(secretsOf(podParts(in.Spec)), " "), "cert client delegate hmac key password redis sentinel sign token user"; got != want {
		t.Errorf("got the Secrets %s, want %s", got, want)
	}
	if got, want := strings.Join(ConfigMaps(in.Spec), " "), "a z"; got != want {
		t.Errorf("got the ConfigMaps %s, want %s", got, want)
	}
	if ConfigMaps(nil) != nil {
		t.Error("there are names in no configuration")
	}
}

// secretsOf returns the names of the Secrets that a pod needs, sorted.
func secretsOf(p *pod) (names []string) {
	for _, variable := range p.env {
		names = append(names, *variable.ValueFrom.SecretKeyRef.Name)
	}
	for _, volume := range p.volumes {
		if volume.Secret != nil {
			names = append(names, *volume.Secret.SecretName)
		}
		if volume.Projected != nil {
			for i := range volume.Projected.Sources {
				names = append(names, *volume.Projected.Sources[i].Secret.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
