// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// What becomes of single fields. ToolHive's own documents are compared in TestParityWithUpstream.
func TestFieldsReachTheRunConfig(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*v1beta1.MCPServer)
		in      Input
		options Options
		// want holds keys and their JSON; an empty one stands for no such key.
		want map[string]string
	}{
		"http": {want: map[string]string{
			"target_host": `"mcp-fetch"`, "target_port": "9000", "host": `"0.0.0.0"`, "mcpserver_generation": "1",
			"proxy_mode": `"streamable-http"`, "scaling_config": "", "middleware_configs": "", "max_request_body_size": "", "proxy_read_timeout": "",
		}},
		"stdio": {
			change: func(s *v1beta1.MCPServer) { s.Spec.Transport, s.Spec.ProxyMode = "stdio", "sse" },
			want:   map[string]string{"target_host": "", "proxy_mode": `"sse"`, "env_vars": `{"MCP_TRANSPORT":"stdio"}`},
		},
		"sse": {
			change: func(s *v1beta1.MCPServer) { s.Spec.Transport = "sse" },
			want:   map[string]string{"proxy_mode": `"sse"`, "target_host": `"mcp-fetch"`},
		},
		"generation": {
			change: func(s *v1beta1.MCPServer) { s.Generation = 99 },
			want:   map[string]string{"mcpserver_generation": "1"},
		},
		"host":     {options: Options{ProxyHost: "::"}, want: map[string]string{"host": `"::"`}},
		"defaults": {change: func(s *v1beta1.MCPServer) { s.Spec = v1beta1.MCPServerSpec{Image: "i"} }, want: map[string]string{"transport": `"stdio"`, "port": "8080", "target_port": "8080", "proxy_mode": `"streamable-http"`}},
		"environment": {
			change: func(s *v1beta1.MCPServer) {
				s.Spec.Env = []v1beta1.EnvVar{{Name: "Z", Value: "1"}, {Name: "A"}, {Name: "MCP_PORT", Value: "1"}, {Name: "MCP_HOST", Value: "h"}}
			},
			want: map[string]string{"env_vars": `{"A":"","FASTMCP_PORT":"9000","MCP_HOST":"h","MCP_PORT":"9000","MCP_TRANSPORT":"streamable-http","Z":"1"}`},
		},
		"volumes": {
			change: func(s *v1beta1.MCPServer) {
				s.Spec.Volumes = []v1beta1.Volume{{Name: "b", HostPath: "/b", MountPath: "/m"}, {Name: "a", HostPath: "/a", MountPath: "/n", ReadOnly: true}}
			},
			want: map[string]string{
				"volumes":            `["/b:/m","/a:/n:ro"]`,
				"permission_profile": `{"name":"network","read":["/a:/n"],"write":["/b:/m"],"network":{"outbound":{"insecure_allow_all":true},"inbound":{}}}`,
			},
		},
		"authorization of a ConfigMap": {
			change: func(s *v1beta1.MCPServer) {
				s.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{
					Type: "configMap", ConfigMap: &v1beta1.ConfigMapAuthzRef{Name: "cm", Key: "k"}, RoleClaimName: "roles", GroupEntityType: "G",
				}
			},
			in: Input{AuthzConfigMap: &corev1.ConfigMap{Data: map[string]string{"k": `
version: "2"
type: cedarv1
cedar:
  policies: ["permit(principal, action, resource);"]
  entities_json: "[]"
  group_claim_name: theirs
  primary_upstream_provider: p
  multi_valued_claims: [scp]
  later: [1]
later: {a: 1}
`}}},
			want: map[string]string{"authz_config": `{"version":"2","type":"cedarv1","later":{"a":1},"cedar":{"policies":["permit(principal, action, resource);"],` +
				`"entities_json":"[]","group_claim_name":"theirs","role_claim_name":"roles","group_entity_type":"G",` +
				`"multi_valued_claims":["scp"],"primary_upstream_provider":"p","later":[1]}}`},
		},
		"authorization by a policy decision point": {
			change: func(s *v1beta1.MCPServer) {
				s.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{Type: "configMap", ConfigMap: &v1beta1.ConfigMapAuthzRef{Name: "cm"}}
			},
			in: Input{AuthzConfigMap: &corev1.ConfigMap{Data: map[string]string{"authz.json": `
version: "1.0"
type: httpv1
pdp: {claim_mapping: standard, http: {url: "https://pdp.example.com", later: 1}}
`}}},
			want: map[string]string{"authz_config": `{"version":"1.0","type":"httpv1",` +
				`"pdp":{"claim_mapping":"standard","http":{"url":"https://pdp.example.com","later":1}}}`},
		},
		"rate limits": {
			change: func(s *v1beta1.MCPServer) {
				s.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: "redis", Address: "r"}
				s.Spec.RateLimiting = &v1beta1.RateLimitConfig{
					Shared: &v1beta1.RateLimitBucket{MaxTokens: 5, RefillPeriod: "1m"},
					Tools:  []v1beta1.ToolRateLimitConfig{{Name: "t", Shared: &v1beta1.RateLimitBucket{MaxTokens: 1, RefillPeriod: "1500ms"}}},
				}
			},
			want: map[string]string{
				"rate_limit_config":    `{"shared":{"maxTokens":5,"refillPeriod":"1m0s"},"tools":[{"name":"t","shared":{"maxTokens":1,"refillPeriod":"1.5s"}}]}`,
				"rate_limit_namespace": `"tools"`,
				"scaling_config":       `{"session_redis":{"address":"r"}}`,
			},
		},
		"redis of the operator": {
			options: Options{DefaultRedis: &Redis{Address: "d:1", PasswordSecret: "s", PasswordKey: "k"}},
			want:    map[string]string{"scaling_config": `{"session_redis":{"address":"d:1"}}`},
		},
		"memory instead of the operator's redis": {
			change:  func(s *v1beta1.MCPServer) { s.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: "memory"} },
			options: Options{DefaultRedis: &Redis{Address: "d:1"}},
			want:    map[string]string{"scaling_config": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Server = newServer()
			if c.change != nil {
				c.change(c.in.Server)
			}
			document := parseJSON(t, []byte(runConfigText(t, mustRender(t, c.in, c.options)))).(map[string]any)
			for key, text := range c.want {
				got, ok := document[key]
				if text == "" {
					if ok {
						t.Errorf("%s is %s, want none", key, jsonOf(t, got))
					}
					continue
				}
				if diff := cmp.Diff(parseJSON(t, []byte(text)), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", key, diff)
				}
			}
		})
	}
}

// What restarts the proxy and the backend, and what does not.
func TestPodsRollOnlyForCause(t *testing.T) {
	type templates struct{ proxy, backend string }
	render := func(changes ...func(*v1beta1.MCPServer)) templates {
		result := renderServer(t, changes...)
		want, owned := statefulSetOf(t, result), statefulSetOf(t, renderServer(t))
		PreserveBackend(want, KeepBackend(owned))
		return templates{
			string(jsonOf(t, deploymentOf(t, result).Spec.Template)), string(jsonOf(t, want.Spec.Template)),
		}
	}
	before := render()
	for name, c := range map[string]struct {
		change         func(*v1beta1.MCPServer)
		proxy, backend bool
	}{
		"a new generation": {change: func(s *v1beta1.MCPServer) { s.Generation++ }},
		"proxyPort":        {func(s *v1beta1.MCPServer) { s.Spec.ProxyPort = 9090 }, true, false},
		"podTemplateSpec":  {withPodTemplate("{spec: {nodeSelector: {a: b}}}"), false, true},
		"secrets":          {func(s *v1beta1.MCPServer) { s.Spec.Secrets = []v1beta1.SecretRef{{Name: "s", Key: "k"}} }, false, true},
		"serviceAccount":   {func(s *v1beta1.MCPServer) { name := "x"; s.Spec.ServiceAccount = &name }, false, true},
		"replicas":         {change: func(s *v1beta1.MCPServer) { n := int32(2); s.Spec.Replicas = &n }},
		"backendReplicas":  {change: func(s *v1beta1.MCPServer) { n := int32(2); s.Spec.BackendReplicas = &n }},
		"env":              {func(s *v1beta1.MCPServer) { s.Spec.Env = []v1beta1.EnvVar{{Name: "A", Value: "1"}} }, true, true},
		"session affinity": {change: func(s *v1beta1.MCPServer) { s.Spec.SessionAffinity = "None" }},
		"resources":        {func(s *v1beta1.MCPServer) { s.Spec.Resources.Limits.CPU = "1" }, true, false},
		"audit":            {func(s *v1beta1.MCPServer) { s.Spec.Audit = &v1beta1.AuditConfig{Enabled: true} }, true, false},
		"image":            {func(s *v1beta1.MCPServer) { s.Spec.Image = "other" }, true, true},
		"a restart": {func(s *v1beta1.MCPServer) {
			s.Annotations = map[string]string{v1beta1.AnnotationRestartedAt: "2026-01-02T03:04:05Z"}
		}, true, false},
		"deployment metadata": {change: func(s *v1beta1.MCPServer) {
			s.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
				ResourceMetadataOverrides: v1beta1.ResourceMetadataOverrides{Annotations: map[string]string{"a": "b"}},
			}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			after := render(c.change)
			if got := after.proxy != before.proxy; got != c.proxy {
				t.Errorf("proxy restarted: %v, want %v:\n%s", got, c.proxy, cmp.Diff(before.proxy, after.proxy))
			}
			if got := after.backend != before.backend; got != c.backend {
				t.Errorf("backend restarted: %v, want %v:\n%s", got, c.backend, cmp.Diff(before.backend, after.backend))
			}
		})
	}
}

// TestChecksumIsOfTheConfigMap: the proxy is rolled by the checksum of exactly what its ConfigMap holds, and is labelled with as ToolHive
// does it. The label that Freehold adds rolls nothing.
func TestChecksumIsOfTheConfigMap(t *testing.T) {
	result := renderServer(t)
	configMap := configOf[*corev1ac.ConfigMapApplyConfiguration](t, result)
	labels := maps.Clone(configMap.Labels)
	delete(labels, v1beta1.LabelAppManagedBy)
	want := runconfig.Checksum(configMap.Data, labels)
	if got := configMap.Annotations[v1beta1.AnnotationContentChecksum]; got != want {
		t.Errorf("on the ConfigMap: got %s, want %s", got, want)
	}
	if got := deploymentOf(t, result).Spec.Template.Annotations[v1beta1.AnnotationRunConfigChecksum]; got != want {
		t.Errorf("on the proxy's pods: got %s, want %s", got, want)
	}
}

// User and group ids are the platform's to give, whoever asked for some.
func TestOnOpenShiftIDsAreThePlatformsToGive(t *testing.T) {
	server := newServer(withPodTemplate(`{spec: {securityContext: {runAsUser: 1, fsGroup: 2},
		containers: [{name: mcp, securityContext: {runAsUser: 3, runAsGroup: 4}}]}}`))
	result := mustRender(t, Input{Server: server}, Options{OpenShift: true})
	for tier, template := range map[string]*corev1ac.PodTemplateSpecApplyConfiguration{
		"proxy": deploymentOf(t, result).Spec.Template, "backend": statefulSetOf(t, result).Spec.Template,
	} {
		pod := `{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}`
		if diff := cmp.Diff(pod, string(jsonOf(t, template.Spec.SecurityContext))); diff != "" {
			t.Errorf("%s pod (-want +got):\n%s", tier, diff)
		}
		container := `{"capabilities":{"drop":["ALL"]},"privileged":false,"runAsNonRoot":true,"readOnlyRootFilesystem":true,` +
			`"allowPrivilegeEscalation":false,"seccompProfile":{"type":"RuntimeDefault"}}`
		if diff := cmp.Diff(container, string(jsonOf(t, template.Spec.Containers[0].SecurityContext))); diff != "" {
			t.Errorf("%s container (-want +got):\n%s", tier, diff)
		}
	}
}

// unnamedCallers is the notice about a policy without a check of tokens.
var unnamedCallers = Problem{
	"AuthzConfigValidated", "AuthzConfigValid",
	"authzConfig is valid. Mind that without spec.oidcConfigRef its policies see every caller as the same local user",
}

// What a user should know, and that nothing is said where there is nothing.
func TestNoticesTellWhatAUserShouldKnow(t *testing.T) {
	if notices := renderServer(t).Notices; len(notices) > 0 {
		t.Errorf("notices: %+v", notices)
	}
	result := renderServer(t, func(s *v1beta1.MCPServer) {
		s.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{Type: "inline", Inline: &v1beta1.InlineAuthzConfig{
			Policies: []string{permitAll}, PrimaryUpstreamProvider: "okta",
		}}
	})
	want := []Problem{
		{
			"AuthzPrimaryUpstreamProviderIgnored", "PrimaryUpstreamProviderIgnored",
			`spec.authzConfig.inline.primaryUpstreamProvider "okta" has no effect on an MCPServer.`,
		},
		unnamedCallers,
	}
	if diff := cmp.Diff(want, result.Notices); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
}

// What an authorization document does that its author may not expect.
func TestNoticesTellWhatAnAuthorizationDocumentDoes(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		change func(*v1beta1.AuthzConfigRef)
		want   []Problem
	}{
		"none": {
			text: "{version: v, type: cedarv1, cedar: {policies: ['permit(principal, action, resource);']}}",
			want: []Problem{unnamedCallers},
		},
		"tokens of a provider that no proxy has": {
			text: "{version: v, type: cedarv1, cedar: {policies: ['permit(principal, action, resource);'], primary_upstream_provider: okta}}",
			want: []Problem{{
				"AuthzConfigValidated", "PrimaryUpstreamProviderDenies",
				`The key "k" of ConfigMap "cm" sets primary_upstream_provider. No proxy of an MCPServer without an ` +
					"embedded authorization server has a token of such a provider: the proxy denies every request. " +
					"Remove primary_upstream_provider to judge requests by their own token.",
			}, unnamedCallers},
		},
		"claim names for a policy decision point": {
			text:   "{version: v, type: httpv1, pdp: {claim_mapping: mpe, http: {url: 'http://h'}}}",
			change: func(ref *v1beta1.AuthzConfigRef) { ref.RoleClaimName = "roles" },
			want: []Problem{{
				"SpecValid", "FieldsIgnored",
				"spec.authzConfig.groupClaimName, roleClaimName and groupEntityType have no effect: the authorization " +
					`configuration in ConfigMap "cm" is not of type cedarv1.`,
			}, unnamedCallers},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ref := &v1beta1.AuthzConfigRef{Type: "configMap", ConfigMap: &v1beta1.ConfigMapAuthzRef{Name: "cm", Key: "k"}}
			if c.change != nil {
				c.change(ref)
			}
			in := Input{
				Server:         newServer(func(s *v1beta1.MCPServer) { s.Spec.AuthzConfig = ref }),
				AuthzConfigMap: &corev1.ConfigMap{Data: map[string]string{"k": c.text}},
			}
			if diff := cmp.Diff(c.want, mustRender(t, in, Options{}).Notices); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
		})
	}
}
