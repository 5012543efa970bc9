// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/freehold-dev/freehold/apis/toolhive"
)

// rejection is a spec that the API server does not take. Each differs from an accepted one in the one thing that a
// rule of the definition is about.
type rejection struct {
	rule string
	// accepted and rejected are the parts of two specs that differ from {"image": "example.com/mcp:1"}.
	accepted, rejected string
	// field and message are what the answer names.
	field, message string
}

const redis = `"sessionStorage":{"provider":"redis","address":"redis:6379"}`

var rejections = []rejection{
	{"image is required", `{}`, `{"image":null}`, "spec.image", "Required"},
	{"transport is an enum", `{"transport":"sse"}`, `{"transport":"websocket"}`, "spec.transport", "Unsupported value"},
	{"proxyMode is an enum", `{"proxyMode":"sse"}`, `{"proxyMode":"stdio"}`, "spec.proxyMode", "Unsupported value"},
	{"proxyPort has a minimum", `{"proxyPort":1}`, `{"proxyPort":0}`, "spec.proxyPort", "greater than or equal to 1"},
	{"proxyPort has a maximum", `{"proxyPort":65535}`, `{"proxyPort":65536}`, "spec.proxyPort", "less than or equal to 65535"},
	{"mcpPort has a minimum", `{"mcpPort":1}`, `{"mcpPort":0}`, "spec.mcpPort", "greater than or equal to 1"},
	{"mcpPort has a maximum", `{"mcpPort":65535}`, `{"mcpPort":65536}`, "spec.mcpPort", "less than or equal to 65535"},
	{"args are strings", `{"args":["1"]}`, `{"args":[1]}`, "spec.args[0]", "must be of type string"},
	{"env needs a name", `{"env":[{"name":"A","value":""}]}`, `{"env":[{"value":"x"}]}`, "spec.env[0].name", "Required"},
	{"env needs a value", `{"env":[{"name":"A","value":""}]}`, `{"env":[{"name":"A"}]}`, "spec.env[0].value", "Required"},
	{
		"env is keyed by name", `{"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}`,
		`{"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}`, "spec.env[1]", "Duplicate",
	},
	{
		"a volume needs a name", `{"volumes":[{"name":"v","hostPath":"/h","mountPath":"/m"}]}`,
		`{"volumes":[{"hostPath":"/h","mountPath":"/m"}]}`, "spec.volumes[0].name", "Required",
	},
	{
		"a volume needs a hostPath", `{"volumes":[{"name":"v","hostPath":"/h","mountPath":"/m"}]}`,
		`{"volumes":[{"name":"v","mountPath":"/m"}]}`, "spec.volumes[0].hostPath", "Required",
	},
	{
		"a volume needs a mountPath", `{"volumes":[{"name":"v","hostPath":"/h","mountPath":"/m"}]}`,
		`{"volumes":[{"name":"v","hostPath":"/h"}]}`, "spec.volumes[0].mountPath", "Required",
	},
	{
		"volumes are keyed by name", `{"volumes":[{"name":"v","hostPath":"/h","mountPath":"/m"},{"name":"w","hostPath":"/h","mountPath":"/n"}]}`,
		`{"volumes":[{"name":"v","hostPath":"/h","mountPath":"/m"},{"name":"v","hostPath":"/h","mountPath":"/n"}]}`, "spec.volumes[1]", "Duplicate",
	},
	{"a secret needs a name", `{"secrets":[{"name":"s","key":"k"}]}`, `{"secrets":[{"key":"k"}]}`, "spec.secrets[0].name", "Required"},
	{"a secret needs a key", `{"secrets":[{"name":"s","key":"k"}]}`, `{"secrets":[{"name":"s"}]}`, "spec.secrets[0].key", "Required"},
	{
		"secrets are keyed by name and key", `{"secrets":[{"name":"s","key":"k"},{"name":"t","key":"k"},{"name":"s","key":"l"}]}`,
		`{"secrets":[{"name":"s","key":"k"},{"name":"s","key":"k","targetEnvName":"T"}]}`, "spec.secrets[1]", "Duplicate",
	},
	{
		"permissionProfile.type is an enum", `{"permissionProfile":{"type":"builtin","name":"none"}}`,
		`{"permissionProfile":{"type":"file","name":"none"}}`, "spec.permissionProfile.type", "Unsupported value",
	},
	{
		"permissionProfile needs a name", `{"permissionProfile":{"name":"none"}}`,
		`{"permissionProfile":{"type":"builtin"}}`, "spec.permissionProfile.name", "Required",
	},
	{"podTemplateSpec is an object", `{"podTemplateSpec":{"spec":5}}`, `{"podTemplateSpec":["spec"]}`, "spec.podTemplateSpec", "must be of type object"},
	{
		"env of the proxy needs a name", `{"resourceOverrides":{"proxyDeployment":{"env":[{"name":"A","value":"1"}]}}}`,
		`{"resourceOverrides":{"proxyDeployment":{"env":[{"value":"1"}]}}}`, "spec.resourceOverrides.proxyDeployment.env[0].name", "Required",
	},
	{
		"env of the proxy needs a value", `{"resourceOverrides":{"proxyDeployment":{"env":[{"name":"A","value":"1"}]}}}`,
		`{"resourceOverrides":{"proxyDeployment":{"env":[{"name":"A"}]}}}`, "spec.resourceOverrides.proxyDeployment.env[0].value", "Required",
	},
	{
		"env of the proxy is keyed by name", `{"resourceOverrides":{"proxyDeployment":{"env":[{"name":"A","value":"1"},{"name":"B","value":"1"}]}}}`,
		`{"resourceOverrides":{"proxyDeployment":{"env":[{"name":"A","value":"1"},{"name":"A","value":"1"}]}}}`,
		"spec.resourceOverrides.proxyDeployment.env[1]", "Duplicate",
	},
	{
		"oidcConfigRef needs a name", `{"oidcConfigRef":{"name":"o","audience":"a"}}`,
		`{"oidcConfigRef":{"name":"","audience":"a"}}`, "spec.oidcConfigRef.name", "at least 1 chars long",
	},
	{
		"oidcConfigRef needs an audience", `{"oidcConfigRef":{"name":"o","audience":"a"}}`,
		`{"oidcConfigRef":{"name":"o","audience":""}}`, "spec.oidcConfigRef.audience", "at least 1 chars long",
	},
	{
		"authzConfig.type is an enum", `{"authzConfig":{"type":"configMap","configMap":{"name":"c"}}}`,
		`{"authzConfig":{"type":"file"}}`, "spec.authzConfig.type", "Unsupported value",
	},
	{
		"authzConfig.configMap needs a name", `{"authzConfig":{"configMap":{"name":"c"}}}`,
		`{"authzConfig":{"configMap":{"key":"k"}}}`, "spec.authzConfig.configMap.name", "Required",
	},
	{
		"authzConfig.configMap belongs to its type", `{"authzConfig":{"type":"configMap","configMap":{"name":"c"}}}`,
		`{"authzConfig":{"type":"configMap"}}`, "spec.authzConfig", "configMap must be set when type is 'configMap'",
	},
	{
		"authzConfig.inline belongs to its type", `{"authzConfig":{"type":"inline","inline":{"policies":["p"]}}}`,
		`{"authzConfig":{"type":"configMap","configMap":{"name":"c"},"inline":{"policies":["p"]}}}`, "spec.authzConfig", "inline must be set when type is 'inline'",
	},
	{
		"authzConfig.inline needs a policy", `{"authzConfig":{"type":"inline","inline":{"policies":["p"]}}}`,
		`{"authzConfig":{"type":"inline","inline":{"policies":[]}}}`, "spec.authzConfig.inline.policies", "at least 1 items",
	},
	{
		"primaryUpstreamProvider is not empty", `{"authzConfig":{"type":"inline","inline":{"policies":["p"],"primaryUpstreamProvider":"a-1"}}}`,
		`{"authzConfig":{"type":"inline","inline":{"policies":["p"],"primaryUpstreamProvider":""}}}`,
		"spec.authzConfig.inline.primaryUpstreamProvider", "at least 1 chars long",
	},
	{
		"primaryUpstreamProvider is short", `{"authzConfig":{"type":"inline","inline":{"policies":["p"],"primaryUpstreamProvider":"` + x(63) + `"}}}`,
		`{"authzConfig":{"type":"inline","inline":{"policies":["p"],"primaryUpstreamProvider":"` + x(64) + `"}}}`,
		"spec.authzConfig.inline.primaryUpstreamProvider", "Too long",
	},
	{
		"primaryUpstreamProvider is a DNS label", `{"authzConfig":{"type":"inline","inline":{"policies":["p"],"primaryUpstreamProvider":"a-1"}}}`,
		`{"authzConfig":{"type":"inline","inline":{"policies":["p"],"primaryUpstreamProvider":"a-"}}}`,
		"spec.authzConfig.inline.primaryUpstreamProvider", "should match",
	},
	{
		"groupClaimName is short", `{"authzConfig":{"configMap":{"name":"c"},"groupClaimName":"` + x(253) + `"}}`,
		`{"authzConfig":{"configMap":{"name":"c"},"groupClaimName":"` + x(254) + `"}}`, "spec.authzConfig.groupClaimName", "Too long",
	},
	{
		"roleClaimName is short", `{"authzConfig":{"configMap":{"name":"c"},"roleClaimName":"` + x(253) + `"}}`,
		`{"authzConfig":{"configMap":{"name":"c"},"roleClaimName":"` + x(254) + `"}}`, "spec.authzConfig.roleClaimName", "Too long",
	},
	{
		"groupEntityType is short", `{"authzConfig":{"configMap":{"name":"c"},"groupEntityType":"` + x(63) + `"}}`,
		`{"authzConfig":{"configMap":{"name":"c"},"groupEntityType":"` + x(64) + `"}}`, "spec.authzConfig.groupEntityType", "Too long",
	},
	{
		"groupEntityType is an identifier", `{"authzConfig":{"configMap":{"name":"c"},"groupEntityType":"Team_1"}}`,
		`{"authzConfig":{"configMap":{"name":"c"},"groupEntityType":"1Team"}}`, "spec.authzConfig.groupEntityType", "should match",
	},
	{"authzConfigRef needs a name", `{"authzConfigRef":{"name":"a"}}`, `{"authzConfigRef":{"name":""}}`, "spec.authzConfigRef.name", "at least 1 chars long"},
	{
		"authzConfig excludes authzConfigRef", `{"authzConfigRef":{"name":"a"}}`,
		`{"authzConfigRef":{"name":"a"},"authzConfig":{"configMap":{"name":"c"}}}`, "spec", "mutually exclusive",
	},
	{"toolConfigRef needs a name", `{"toolConfigRef":{"name":"t"}}`, `{"toolConfigRef":{}}`, "spec.toolConfigRef.name", "Required"},
	{"externalAuthConfigRef needs a name", `{"externalAuthConfigRef":{"name":"e"}}`, `{"externalAuthConfigRef":{}}`, "spec.externalAuthConfigRef.name", "Required"},
	{
		"authServerRef.kind is an enum", `{"authServerRef":{"kind":"MCPExternalAuthConfig","name":"a"}}`,
		`{"authServerRef":{"kind":"Secret","name":"a"}}`, "spec.authServerRef.kind", "Unsupported value",
	},
	{"authServerRef needs a name", `{"authServerRef":{"name":"a"}}`, `{"authServerRef":{"name":""}}`, "spec.authServerRef.name", "at least 1 chars long"},
	{"webhookConfigRef needs a name", `{"webhookConfigRef":{"name":"w"}}`, `{"webhookConfigRef":{}}`, "spec.webhookConfigRef.name", "Required"},
	{"telemetryConfigRef needs a name", `{"telemetryConfigRef":{"name":"t"}}`, `{"telemetryConfigRef":{"name":""}}`, "spec.telemetryConfigRef.name", "at least 1 chars long"},
	{"groupRef needs a name", `{"groupRef":{"name":"g"}}`, `{"groupRef":{"name":""}}`, "spec.groupRef.name", "at least 1 chars long"},
	{"sessionAffinity is an enum", `{"sessionAffinity":"None"}`, `{"sessionAffinity":"Cookie"}`, "spec.sessionAffinity", "Unsupported value"},
	{"a body's size is not negative", `{"maxRequestBodySize":0}`, `{"maxRequestBodySize":-1}`, "spec.maxRequestBodySize", "greater than or equal to 0"},
	// Days are a duration for the API server, though not for Go.
	{"proxyReadTimeout is a duration", `{"proxyReadTimeout":"2d"}`, `{"proxyReadTimeout":"soon"}`, "spec.proxyReadTimeout", "duration"},
	{"proxyReadTimeout is not negative", `{"proxyReadTimeout":"0s"}`, `{"proxyReadTimeout":"-1s"}`, "spec.proxyReadTimeout", "must be non-negative"},
	{
		"tls needs redis", `{"sessionStorage":{"provider":"redis","address":"redis:6379","tls":{}}}`,
		`{"sessionStorage":{"provider":"memory","tls":{}}}`, "spec.sessionStorage", "tls is only supported when provider is redis",
	},
	{
		"insecureSkipVerify excludes caCertSecretRef",
		`{"sessionStorage":{"provider":"redis","address":"redis:6379","tls":{"insecureSkipVerify":false,"caCertSecretRef":{"name":"s","key":"k"}}}}`,
		`{"sessionStorage":{"provider":"redis","address":"redis:6379","tls":{"insecureSkipVerify":true,"caCertSecretRef":{"name":"s","key":"k"}}}}`,
		"spec.sessionStorage", "set only one",
	},
	{
		"caCertSecretRef has no empty name", `{"sessionStorage":{"provider":"redis","address":"redis:6379","tls":{"caCertSecretRef":{"name":"s","key":"k"}}}}`,
		`{"sessionStorage":{"provider":"redis","address":"redis:6379","tls":{"caCertSecretRef":{"name":"","key":"k"}}}}`,
		"spec.sessionStorage", "requires a non-empty name and key",
	},
	{
		"caCertSecretRef needs a key", `{"sessionStorage":{"provider":"redis","address":"redis:6379","tls":{"caCertSecretRef":{"name":"s","key":"k"}}}}`,
		`{"sessionStorage":{"provider":"redis","address":"redis:6379","tls":{"caCertSecretRef":{"name":"s"}}}}`,
		"spec.sessionStorage.tls.caCertSecretRef.key", "Required",
	},
	{
		"a requirement of a node needs an operator", `{"resourceOverrides":{"proxyDeployment":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
			{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"Exists"}]}]}}}}}}`,
		`{"resourceOverrides":{"proxyDeployment":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
			{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k"}]}]}}}}}}`,
		"spec.resourceOverrides.proxyDeployment.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator",
		"Required",
	},
	{"replicas are not negative", `{"replicas":0}`, `{"replicas":-1}`, "spec.replicas", "greater than or equal to 0"},
	{"backendReplicas are not negative", `{"backendReplicas":0}`, `{"backendReplicas":-1}`, "spec.backendReplicas", "greater than or equal to 0"},
	{
		"sessionStorage.provider is an enum", `{"sessionStorage":{"provider":"memory"}}`,
		`{"sessionStorage":{"provider":"disk"}}`, "spec.sessionStorage.provider", "Unsupported value",
	},
	{"sessionStorage needs a provider", `{"sessionStorage":{"provider":"memory"}}`, `{"sessionStorage":{}}`, "spec.sessionStorage.provider", "Required"},
	{"redis needs an address", `{` + redis + `}`, `{"sessionStorage":{"provider":"redis"}}`, "spec.sessionStorage", "address is required"},
	{
		"an address is not empty", `{` + redis + `}`,
		`{"sessionStorage":{"provider":"redis","address":""}}`, "spec.sessionStorage.address", "at least 1 chars long",
	},
	{
		"a database is not negative", `{"sessionStorage":{"provider":"memory","db":0}}`,
		`{"sessionStorage":{"provider":"memory","db":-1}}`, "spec.sessionStorage.db", "greater than or equal to 0",
	},
	{
		"passwordRef needs a name", `{"sessionStorage":{"provider":"memory","passwordRef":{"name":"s","key":"k"}}}`,
		`{"sessionStorage":{"provider":"memory","passwordRef":{"key":"k"}}}`, "spec.sessionStorage.passwordRef.name", "Required",
	},
	{
		"passwordRef needs a key", `{"sessionStorage":{"provider":"memory","passwordRef":{"name":"s","key":"k"}}}`,
		`{"sessionStorage":{"provider":"memory","passwordRef":{"name":"s"}}}`, "spec.sessionStorage.passwordRef.key", "Required",
	},
	{
		"rateLimiting needs redis", `{` + redis + `,"rateLimiting":{"shared":{"maxTokens":1,"refillPeriod":"1s"}}}`,
		`{"rateLimiting":{"shared":{"maxTokens":1,"refillPeriod":"1s"}}}`, "spec", "requires sessionStorage with provider 'redis'",
	},
	{
		"a limit per user needs authentication",
		`{` + redis + `,"rateLimiting":{"perUser":{"maxTokens":1,"refillPeriod":"1s"}},"externalAuthConfigRef":{"name":"e"}}`,
		`{` + redis + `,"rateLimiting":{"perUser":{"maxTokens":1,"refillPeriod":"1s"}}}`, "spec", "rateLimiting.perUser requires authentication",
	},
	{
		"a limit per user of a tool needs authentication",
		`{` + redis + `,"rateLimiting":{"tools":[{"name":"t","perUser":{"maxTokens":1,"refillPeriod":"1s"}}]},"oidcConfigRef":{"name":"o","audience":"a"}}`,
		`{` + redis + `,"rateLimiting":{"tools":[{"name":"t","perUser":{"maxTokens":1,"refillPeriod":"1s"}}]}}`,
		"spec", "per-tool perUser rate limiting requires authentication",
	},
	{
		"rateLimiting sets something", `{` + redis + `,"rateLimiting":{"shared":{"maxTokens":1,"refillPeriod":"1s"}}}`,
		`{` + redis + `,"rateLimiting":{"tools":[]}}`, "spec.rateLimiting", "at least one of shared, perUser, or tools",
	},
	{
		"a tool's limit sets something", `{` + redis + `,"rateLimiting":{"tools":[{"name":"t","shared":{"maxTokens":1,"refillPeriod":"1s"}}]}}`,
		`{` + redis + `,"rateLimiting":{"tools":[{"name":"t"}]}}`, "spec.rateLimiting.tools[0]", "at least one of shared or perUser",
	},
	{
		"maxTokens has a minimum", `{` + redis + `,"rateLimiting":{"shared":{"maxTokens":1,"refillPeriod":"1s"}}}`,
		`{` + redis + `,"rateLimiting":{"shared":{"maxTokens":0,"refillPeriod":"1s"}}}`, "spec.rateLimiting.shared.maxTokens", "greater than or equal to 1",
	},
	{
		"refillPeriod is required", `{` + redis + `,"rateLimiting":{"shared":{"maxTokens":1,"refillPeriod":"1s"}}}`,
		`{` + redis + `,"rateLimiting":{"shared":{"maxTokens":1}}}`, "spec.rateLimiting.shared.refillPeriod", "Required",
	},
	{
		"a tool has a name", `{` + redis + `,"rateLimiting":{"tools":[{"name":"t","shared":{"maxTokens":1,"refillPeriod":"1s"}}]}}`,
		`{` + redis + `,"rateLimiting":{"tools":[{"name":"","shared":{"maxTokens":1,"refillPeriod":"1s"}}]}}`,
		"spec.rateLimiting.tools[0].name", "at least 1 chars long",
	},
	{
		"tools are keyed by name",
		`{` + redis + `,"rateLimiting":{"tools":[{"name":"t","shared":{"maxTokens":1,"refillPeriod":"1s"}},{"name":"u","shared":{"maxTokens":1,"refillPeriod":"1s"}}]}}`,
		`{` + redis + `,"rateLimiting":{"tools":[{"name":"t","shared":{"maxTokens":1,"refillPeriod":"1s"}},{"name":"t","shared":{"maxTokens":1,"refillPeriod":"1s"}}]}}`,
		"spec.rateLimiting.tools[1]", "Duplicate",
	},
}

func x(n int) string { return strings.Repeat("x", n) }

// TestRejectedByDefinition shows that the API server itself keeps out what the definition of MCPServers excludes, in
// both versions, and nothing else: nothing of it reaches the operator.
func TestRejectedByDefinition(t *testing.T) {
	t.Parallel()
	namespace := env.Namespace(t).Name
	client, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		servers := client.Resource(schema.GroupVersionResource{
			Group: toolhive.GroupName, Version: version, Resource: "mcpservers",
		}).Namespace(namespace)
		for _, r := range rejections {
			t.Run(version+"/"+r.rule, func(t *testing.T) {
				send := func(part string) error {
					_, err := servers.Create(t.Context(), mcpServer(t, version, part), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
					return err
				}
				if err := send(r.accepted); err != nil {
					t.Errorf("%s should be accepted: %v", r.accepted, err)
				}
				err := send(r.rejected)
				if !apierrors.IsInvalid(err) {
					t.Fatalf("%s should be invalid, but the answer is: %v", r.rejected, err)
				}
				status, _ := errors.AsType[*apierrors.StatusError](err)
				if !slices.ContainsFunc(status.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool {
					return c.Field == r.field && strings.Contains(c.Message, r.message)
				}) {
					t.Errorf("the answer should say %q of %s; it is: %v", r.message, r.field, err)
				}
			})
		}
	}
}

// mcpServer makes an MCPServer of which part of the spec is given; null takes a field away.
func mcpServer(t *testing.T, version, part string) *unstructured.Unstructured {
	t.Helper()
	spec := map[string]any{"image": "example.com/mcp:1"}
	given := map[string]any{}
	if err := json.Unmarshal([]byte(part), &given); err != nil {
		t.Fatalf("%s: %v", part, err)
	}
	maps.Copy(spec, given)
	maps.DeleteFunc(spec, func(_ string, value any) bool { return value == nil })
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": toolhive.GroupName + "/" + version,
		"kind":       "MCPServer",
		"metadata":   map[string]any{"name": "tried"},
		"spec":       spec,
	}}
}
