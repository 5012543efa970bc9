// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// TestCharactersInDocuments: a character that no apply carries can be in what the proxyrunner reads, wherever it comes from.
func TestCharactersInDocuments(t *testing.T) {
	const policy = "permit(principal, action, resource) when { \"\u0090\" == \"\" };"
	for name, change := range map[string]func(in *Input){
		"a ConfigMap": func(in *Input) {
			in.Server.Spec.AuthzConfigRef = nil
			in.Server.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{Type: "configMap", ConfigMap: &v1beta1.ConfigMapAuthzRef{Name: "cm"}}
			in.AuthzConfigMap = &corev1.ConfigMap{Data: map[string]string{
				"authz.json": `{"version":"1.0","type":"cedarv1","cedar":{"policies":["` + strings.NewReplacer(`"`, `\"`, "\u0090", `\u0090`).Replace(policy) + `"]}}`,
			}}
		},
		"an inline policy": func(in *Input) {
			in.Server.Spec.AuthzConfigRef = nil
			in.Server.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{Type: "inline", Inline: &v1beta1.InlineAuthzConfig{Policies: []string{policy}}}
		},
		"a tool": func(in *Input) {
			in.References.Tool.Spec.ToolsOverride = map[string]v1beta1.ToolOverride{"x": {Description: "caf\u0082\uffff"}}
		},
		"an attribute": func(in *Input) {
			in.References.Telemetry.Spec.OpenTelemetry = &v1beta1.MCPTelemetryOTelConfig{
				Enabled: true, Endpoint: "otel:4318", Tracing: &v1beta1.OpenTelemetryTracingConfig{Enabled: true}, ResourceAttributes: map[string]string{"a": "\u0090"},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := wholeReferences()
			change(&in)
			result := mustRender(t, in, Options{})
			if len(result.Held) > 0 {
				t.Errorf("held: %v", result.Held)
			}
			for _, intent := range result.Intents {
				if _, found := unsendable(reflect.ValueOf(intent.Config)); found {
					t.Errorf("the %s %s cannot be sent", intent.Kind.Kind, intent.Name)
				}
			}
		})
	}
}

// TestCharactersOfReferences: where such a character of a reference is to be in the proxy's template, only the proxy waits, and the
// condition of that reference says so, not of another one that has the character too.
func TestCharactersOfReferences(t *testing.T) {
	in := wholeReferences()
	in.References.Telemetry.Spec.OpenTelemetry = &v1beta1.MCPTelemetryOTelConfig{
		Enabled: true, Endpoint: "otel:4318", Tracing: &v1beta1.OpenTelemetryTracingConfig{Enabled: true},
		Headers:          map[string]string{"x\u0090": "v"},
		SensitiveHeaders: []v1beta1.SensitiveHeader{{Name: "y", SecretKeyRef: v1beta1.SecretKeyRef{Name: "s", Key: "k"}}},
	}
	in.References.Tool.Spec.ToolsOverride = map[string]v1beta1.ToolOverride{"x": {Description: "\u0090"}}
	in.Server.Spec.AuthzConfigRef = nil
	in.Server.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{Type: "inline", Inline: &v1beta1.InlineAuthzConfig{
		Policies: []string{"permit(principal, action, resource); // \u0090"},
	}}
	result := mustRender(t, in, Options{})
	want := []Problem{{
		v1beta1.ConditionTelemetryConfigRefValidated, v1beta1.ReasonTelemetryConfigRefInvalid,
		`The MCPTelemetryConfig "r" of spec.telemetryConfigRef cannot be used: it holds the character U+0090, which the API server ` +
			`cannot take in an apply of the proxy.`,
	}}
	if diff := cmp.Diff(want, result.Held); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	if result.Hashes.Telemetry != "" || result.Hashes.Tool == "" {
		t.Errorf("hashes %+v", result.Hashes)
	}
	if slices.ContainsFunc(result.Intents, Intent.IsOfProxy) || !slices.ContainsFunc(result.Intents, func(i Intent) bool { return i.Child == inventory.Backend }) {
		t.Errorf("intents %v", namesOf(result.Intents))
	}
}

// TestCharactersOfSpec: the message names the place where the character does harm, not another one where it does none.
func TestCharactersOfSpec(t *testing.T) {
	in := wholeReferences()
	in.Server.Spec.AuthzConfigRef = nil
	in.Server.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{Type: "inline", Inline: &v1beta1.InlineAuthzConfig{
		Policies: []string{"permit(principal, action, resource); // \u0090"},
	}}
	in.Server.Spec.TelemetryConfigRef.ServiceName = "shop\u0090"
	checkProblems(t, in, v1beta1.ConditionSpecValid, v1beta1.ReasonInvalidCharacter, []string{
		"spec.telemetryConfigRef.serviceName holds the character U+0090, which the API server cannot take in an apply.",
	})
}
