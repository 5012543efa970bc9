// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1alpha1"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// wholeReferences is an MCPServer with one reference of each kind, and what they name.
func wholeReferences() Input {
	meta := metav1.ObjectMeta{Name: "r", Namespace: "tools", UID: "u-r", Generation: 3, ResourceVersion: "33"}
	status := func() v1beta1.ConfigStatus {
		return v1beta1.ConfigStatus{ConfigHash: "h", Conditions: []metav1.Condition{
			{Type: v1beta1.ConditionValid, Status: metav1.ConditionTrue, ObservedGeneration: 3},
		}}
	}
	in := Input{Server: newServer(func(s *v1beta1.MCPServer) {
		s.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "r", Audience: "a"}
		s.Spec.AuthzConfigRef = &v1beta1.MCPAuthzConfigReference{Name: "r"}
		s.Spec.ExternalAuthConfigRef = &v1beta1.ExternalAuthConfigRef{Name: "r"}
		s.Spec.WebhookConfigRef = &v1beta1.WebhookConfigRef{Name: "r"}
		s.Spec.TelemetryConfigRef = &v1beta1.MCPTelemetryConfigReference{Name: "r"}
		s.Spec.ToolConfigRef = &v1beta1.ToolConfigRef{Name: "r"}
	})}
	in.References.Objects = configs.Objects{
		"oidcConfigRef": &v1beta1.MCPOIDCConfig{ObjectMeta: meta, Status: status(), Spec: v1beta1.MCPOIDCConfigSpec{
			Type: v1beta1.MCPOIDCConfigTypeInline, Inline: &v1beta1.InlineOIDCSharedConfig{Issuer: "https://idp.example.com"},
		}},
		"authzConfigRef": &v1beta1.MCPAuthzConfig{ObjectMeta: meta, Status: status(), Spec: v1beta1.MCPAuthzConfigSpec{
			Type: "cedarv1", Config: runtime.RawExtension{Raw: []byte(`{"policies":["` + permitAll + `"]}`)},
		}},
		"externalAuthConfigRef": &v1beta1.MCPExternalAuthConfig{ObjectMeta: meta, Status: status(), Spec: v1beta1.MCPExternalAuthConfigSpec{
			Type: v1beta1.ExternalAuthTypeTokenExchange, TokenExchange: &v1beta1.TokenExchangeConfig{TokenURL: "https://sts.example.com", Audience: "b"},
		}},
		"toolConfigRef": &v1beta1.MCPToolConfig{ObjectMeta: meta, Status: status(), Spec: v1beta1.MCPToolConfigSpec{ToolsFilter: []string{"echo"}}},
		"telemetryConfigRef": &v1beta1.MCPTelemetryConfig{ObjectMeta: meta, Status: status(), Spec: v1beta1.MCPTelemetryConfigSpec{
			Prometheus: &v1beta1.PrometheusConfig{Enabled: true},
		}},
		"webhookConfigRef": &v1alpha1.MCPWebhookConfig{ObjectMeta: meta, Status: status(), Spec: v1beta1.MCPWebhookConfigSpec{
			Mutating: []v1beta1.WebhookSpec{{Name: "m", URL: "https://hook.example.com"}},
		}},
	}
	return in
}

// For each subset of references that cannot be used there is no proxy and no RunConfig, everything else is rendered as it would be, and
// each of them is told. Without any, every block is there.
func TestWithoutOneOfItsReferencesThereIsNoProxy(t *testing.T) {
	kinds := []struct {
		name, condition, block, field string
	}{
		{"oidc", v1beta1.ConditionOIDCConfigRefValidated, "oidc_config", "oidcConfigRef"},
		{"authz", v1beta1.ConditionAuthzConfigRefValidated, "authz_config", "authzConfigRef"},
		{"externalAuth", v1beta1.ConditionExternalAuthConfigValidated, "token_exchange_config", "externalAuthConfigRef"},
		{"webhook", v1beta1.ConditionWebhookConfigValidated, "mutating_webhooks", "webhookConfigRef"},
		{"telemetry", v1beta1.ConditionTelemetryConfigRefValidated, "telemetry_config", "telemetryConfigRef"},
		{"tool", v1beta1.ConditionToolConfigRefValidated, "tools_filter", "toolConfigRef"},
	}
	whole := mustRender(t, wholeReferences(), Options{})
	for subset := range 1 << len(kinds) {
		in := wholeReferences()
		var broken []string
		for i, kind := range kinds {
			if subset&(1<<i) != 0 {
				delete(in.References.Objects, kind.field)
				broken = append(broken, kind.condition)
			}
		}
		result := mustRender(t, in, Options{})
		var told []string
		for _, problem := range result.Held {
			told = append(told, problem.Condition)
		}
		slices.Sort(told)
		slices.Sort(broken)
		if !slices.Equal(told, broken) {
			t.Errorf("subset %b: held for %v, want %v", subset, told, broken)
		}
		var rest []Intent
		for _, intent := range whole.Intents {
			if len(broken) == 0 || !intent.IsOfProxy() {
				rest = append(rest, intent)
			}
		}
		if got, want := namesOf(result.Intents), namesOf(rest); !slices.Equal(got, want) {
			t.Errorf("subset %b: intents %v, want %v", subset, got, want)
		}
	}
	document := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(runConfigText(t, whole)), &document); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		if len(document[kind.block]) == 0 {
			t.Errorf("the RunConfig has no %s", kind.block)
		}
	}
}

func namesOf(intents []Intent) (names []string) {
	for _, intent := range intents {
		names = append(names, intent.Writer+" "+intent.Kind.Kind+"/"+intent.Name)
	}
	return names
}

// TestReferencesAreRecorded: the states of what the proxy is rendered from come with it.
func TestReferencesAreRecorded(t *testing.T) {
	in := wholeReferences()
	configs.OIDCConfigRef.In(in.References.Objects).Spec.Inline.CABundleRef = &v1beta1.CABundleSource{ConfigMapRef: &v1beta1.ConfigMapKeySelector{Name: "ca", Key: "ca.crt"}}
	result := mustRender(t, in, Options{})
	var got []string
	for _, ref := range result.References {
		got = append(got, ref.Name)
		if ref.UID != "u-r" || ref.Generation != 3 || ref.ResourceVersion != "33" {
			t.Errorf("%+v", ref)
		}
	}
	slices.Sort(got)
	want := []string{
		"mcpauthzconfig/r", "mcpexternalauthconfig/r", "mcpoidcconfig/r", "mcptelemetryconfig/r", "mcptoolconfig/r", "mcpwebhookconfig/r",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	if result.Hashes["oidcConfigRef"] != "h" || result.Hashes["webhookConfigRef"] != "h" {
		t.Errorf("hashes %+v", result.Hashes)
	}
}

// What another operator has found invalid in this very generation is not used, what it found in another one does not count, and a spec with
// fields that are not known is not used either.
func TestAReferenceThatWasFoundInvalidIsNotUsed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Input)
		reason string
		text   string
	}{
		"not validated yet": {change: func(in *Input) { configs.OIDCConfigRef.In(in.References.Objects).Status.Conditions = nil }},
		"invalid before": {change: func(in *Input) {
			configs.OIDCConfigRef.In(in.References.Objects).Status.Conditions[0] = metav1.Condition{Type: "Valid", Status: metav1.ConditionFalse, ObservedGeneration: 2}
		}},
		"invalid": {
			change: func(in *Input) {
				configs.OIDCConfigRef.In(in.References.Objects).Status.Conditions[0] = metav1.Condition{Type: "Valid", Status: metav1.ConditionFalse, ObservedGeneration: 3, Message: "no."}
			},
			reason: v1beta1.ReasonOIDCConfigRefNotValid, text: `has the condition Valid=False: no.`,
		},
		"edited to invalid, and still called valid": {
			change: func(in *Input) {
				configs.OIDCConfigRef.In(in.References.Objects).Generation, configs.OIDCConfigRef.In(in.References.Objects).Spec.Inline.Issuer = 4, "ftp://idp"
			},
			reason: v1beta1.ReasonOIDCConfigRefNotValid, text: `scheme "ftp"`,
		},
		"a field of a later version": {
			change: func(in *Input) {
				configs.OIDCConfigRef.In(in.References.Objects).Spec.UnknownFields = []string{"inline.pinned"}
			},
			reason: v1beta1.ReasonOIDCConfigRefNotValid, text: "does not know spec.inline.pinned",
		},
		"a field that the API server dropped": {
			change: func(in *Input) {
				configs.OIDCConfigRef.In(in.References.Objects).Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"spec":{"audience":"mine"}}`}
				*in = in.Bounded(Options{})
			},
			reason: v1beta1.ReasonOIDCConfigRefNotValid, text: `the API server dropped "spec.audience"`,
		},
		"not served": {
			change: func(in *Input) {
				delete(in.References.Objects, "oidcConfigRef")
				in.References.Unavailable = map[string]Unavailable{"MCPOIDCConfig": {Unserved: true, Cause: "no CRD"}}
			},
			reason: v1beta1.ReasonOIDCConfigRefNotFound, text: "no CRD",
		},
		"not listed": {
			change: func(in *Input) {
				delete(in.References.Objects, "oidcConfigRef")
				in.References.Unavailable = map[string]Unavailable{"MCPOIDCConfig": {Cause: "forbidden"}}
			},
			reason: v1beta1.ReasonOIDCConfigRefError, text: "forbidden",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := wholeReferences()
			c.change(&in)
			result := mustRender(t, in, Options{})
			if c.reason == "" {
				if len(result.Held) > 0 {
					t.Errorf("held: %+v", result.Held)
				}
				return
			}
			if len(result.Held) != 1 || result.Held[0].Reason != c.reason || !strings.Contains(result.Held[0].Message, c.text) {
				t.Errorf("held: %+v, want %s with %q", result.Held, c.reason, c.text)
			}
		})
	}
}

// With a header from a Secret all headers are in the variable that the exporter reads, since it reads none from there when the RunConfig
// has some.
func TestASensitiveHeaderTakesAllHeadersToTheVariable(t *testing.T) {
	in := wholeReferences()
	configs.TelemetryConfigRef.In(in.References.Objects).Spec.OpenTelemetry = &v1beta1.MCPTelemetryOTelConfig{
		Enabled: true, Endpoint: "https://otel:4318", Tracing: &v1beta1.OpenTelemetryTracingConfig{Enabled: true, SamplingRate: "1.0"},
		Headers: map[string]string{"x-team": "a,b $(c)$$", "x$$y": "z"},
		SensitiveHeaders: []v1beta1.SensitiveHeader{
			{Name: "X-Key", SecretKeyRef: v1beta1.SecretKeyRef{Name: "s", Key: "k"}},
		},
	}
	result := mustRender(t, in, Options{})
	if text := runConfigText(t, result); strings.Contains(text, "x-team") || !strings.Contains(text, `"samplingRate": "1"`) {
		t.Errorf("RunConfig:\n%s", text)
	}
	pod := renderedProxy(t, result)
	at := slices.IndexFunc(pod.Containers[0].Env, func(v corev1.EnvVar) bool { return v.Name == envOTelHeaders })
	if at < 0 || pod.Containers[0].Env[at].Value != "X-Key=$(TOOLHIVE_OTEL_HEADER_X_KEY),x$$$$y=z,x-team=a%2Cb%20%24%28c%29%24%24" {
		t.Errorf("env: %+v", pod.Containers[0].Env)
	}
	// The kubelet expands what comes before.
	if secret := slices.IndexFunc(pod.Containers[0].Env, func(v corev1.EnvVar) bool { return v.Name == "TOOLHIVE_OTEL_HEADER_X_KEY" }); secret > at {
		t.Error("the secret comes after its use")
	}
}

func TestTheNumberOfPodsOfAHeldProxyIsNotHeld(t *testing.T) {
	in, number := wholeReferences(), int32(2)
	in.Server.Spec.Replicas = &number
	delete(in.References.Objects, "authzConfigRef")
	result := mustRender(t, in, Options{})
	if !slices.ContainsFunc(result.Intents, func(i Intent) bool { return i.Child == inventory.Proxy && i.Writer == i.Child.Replicas }) {
		t.Errorf("intents %v", namesOf(result.Intents))
	}
}

// TestBundlesRollTheProxy: another content of certificate authorities makes another template, another key of the ConfigMap does not.
func TestBundlesRollTheProxy(t *testing.T) {
	render := func(data map[string]string) (checksum string, references []Reference) {
		in := wholeReferences()
		configs.OIDCConfigRef.In(in.References.Objects).Spec.Inline.CABundleRef = &v1beta1.CABundleSource{ConfigMapRef: &v1beta1.ConfigMapKeySelector{Name: "ca", Key: "ca.crt"}}
		if data != nil {
			in.References.Bundles = map[string]*corev1.ConfigMap{"ca": {
				ObjectMeta: metav1.ObjectMeta{Name: "ca", UID: "u-ca", ResourceVersion: "5"}, Data: data,
			}}
		}
		result := mustRender(t, in, Options{})
		return deploymentOf(t, result).Spec.Template.Annotations[v1beta1.AnnotationCAChecksum], result.References
	}
	one, references := render(map[string]string{"ca.crt": "1"})
	if !slices.Contains(references, Reference{Name: "configmap/ca", UID: "u-ca", ResourceVersion: "5"}) {
		t.Errorf("references %v", references)
	}
	other, _ := render(map[string]string{"ca.crt": "2"})
	more, _ := render(map[string]string{"ca.crt": "1", "else": "x"})
	none, references := render(nil)
	if one == "" || one == other || one != more || none != "" {
		t.Errorf("checksums %q, %q, %q and %q", one, other, more, none)
	}
	if slices.ContainsFunc(references, func(r Reference) bool { return r.Name == "configmap/ca" }) {
		t.Errorf("references %v", references)
	}
}

// TestMissingBundleIsReported: as for token issuers, also a missing key of a collector's certificate authorities is told.
func TestMissingBundleIsReported(t *testing.T) {
	for want, bundles := range map[string]map[string]*corev1.ConfigMap{
		`the ConfigMap "ca" with certificate authorities does not exist`: nil,
		`the ConfigMap "ca" has no key "x" with certificate authorities`: {"ca": {ObjectMeta: metav1.ObjectMeta{Name: "ca"}}},
	} {
		in := wholeReferences()
		configs.TelemetryConfigRef.In(in.References.Objects).Spec.OpenTelemetry = &v1beta1.MCPTelemetryOTelConfig{
			Enabled: true, Endpoint: "otel:4318", Tracing: &v1beta1.OpenTelemetryTracingConfig{Enabled: true},
			CABundleRef: &v1beta1.CABundleSource{ConfigMapRef: &v1beta1.ConfigMapKeySelector{Name: "ca", Key: "x"}},
		}
		in.References.Bundles = bundles
		result := mustRender(t, in, Options{})
		if !slices.ContainsFunc(result.Notices, func(p Problem) bool {
			return p.Condition == v1beta1.ConditionTelemetryConfigRefValidated && strings.Contains(p.Message, want)
		}) {
			t.Errorf("notices %v, want %s", result.Notices, want)
		}
	}
}
