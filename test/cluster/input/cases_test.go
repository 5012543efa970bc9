// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

func invalidTemplate(message ...string) harness.Expectation {
	return harness.Expectation{Condition: v1beta1.ConditionPodTemplateValid, Status: metav1.ConditionFalse, Reason: "InvalidPodTemplateSpec", Message: message}
}

func invalidSpec(reason string, message ...string) harness.Expectation {
	return harness.Expectation{Condition: v1beta1.ConditionSpecValid, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// badTemplates are podTemplateSpecs that cannot be used.
var badTemplates = []badInput{
	{
		name: "string-for-list", spoil: harness.PodTemplate(`{"spec":{"containers":[{"name":"mcp","command":"sh"}]}}`),
		expect: invalidTemplate("spec.podTemplateSpec is not a pod template", "command"),
	},
	{
		name: "object-for-list", spoil: harness.PodTemplate(`{"spec":{"containers":{"name":"mcp"}}}`),
		expect: invalidTemplate("spec.podTemplateSpec is not a pod template", "containers"),
	},
	{
		name: "string-for-object", spoil: harness.PodTemplate(`{"metadata":"labels"}`),
		expect: invalidTemplate("spec.podTemplateSpec is not a pod template", "metadata"),
	},
	{
		name: "string-for-number", spoil: harness.PodTemplate(`{"spec":{"terminationGracePeriodSeconds":"30"}}`),
		expect: invalidTemplate("spec.podTemplateSpec is not a pod template", "terminationGracePeriodSeconds"),
	},
	{
		name: "number-for-string", spoil: harness.PodTemplate(`{"spec":{"containers":[{"name":"mcp","env":[{"name":"A","value":1}]}]}}`),
		expect: invalidTemplate("spec.podTemplateSpec is not a pod template", "env"),
	},
	{
		name: "template-quantity", spoil: harness.PodTemplate(`{"spec":{"containers":[{"name":"mcp","resources":{"limits":{"memory":"12Zz"}}}]}}`),
		expect: invalidTemplate("spec.podTemplateSpec.spec.containers[0].resources.limits.memory is not a quantity"),
	},
	{
		name: "template-huge-quantity", spoil: harness.PodTemplate(`{"spec":{"containers":[{"name":"mcp","resources":{"limits":{"memory":"1e999999999"}}}]}}`),
		expect: invalidTemplate("memory"),
	},
	{
		name: "template-request-above", spoil: harness.PodTemplate(`{"spec":{"containers":[{"name":"mcp","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"2"}}}]}}`),
		expect: invalidTemplate("containers[0].resources", "cpu", "limit"),
	},
	{
		name: "container-name", spoil: harness.PodTemplate(`{"spec":{"containers":[{"name":"Side Car","image":"example.com/side:1"}]}}`),
		expect: invalidTemplate("containers[0].name", "Side Car"),
	},
	{
		name: "container-image", spoil: harness.PodTemplate(`{"spec":{"containers":[{"name":"side"}]}}`),
		expect: invalidTemplate("containers[0]", "side", "image"),
	},
	{
		name: "missing-volume", spoil: harness.PodTemplate(`{"spec":{"containers":[{"name":"mcp","volumeMounts":[{"name":"data","mountPath":"/data"}]}]}}`),
		expect: invalidTemplate("volumeMounts[0]", "data"),
	},
	{
		name: "env-name", spoil: harness.PodTemplate(`{"spec":{"containers":[{"name":"mcp","env":[{"name":"A=B","value":"1"}]}]}}`),
		expect: invalidTemplate("env[0].name", "A=B"),
	},
	{
		name: "env-without-name", spoil: harness.PodTemplate(`{"spec":{"containers":[{"name":"mcp","env":[{"value":"1"}]}]}}`),
		expect: invalidTemplate("env[0]"),
	},
	{
		name: "template-label", spoil: harness.PodTemplate(`{"metadata":{"labels":{"no good":"x"}}}`),
		expect: invalidTemplate("labels", "no good"),
	},
	{
		name: "restart-policy", spoil: harness.PodTemplate(`{"spec":{"restartPolicy":"Never"}}`),
		expect: invalidTemplate("restartPolicy", "Never"),
	},
	{
		name: "init-called-mcp", spoil: harness.PodTemplate(`{"spec":{"initContainers":[{"name":"mcp","image":"example.com/init:1"}]}}`),
		expect: invalidTemplate("initContainers", "mcp"),
	},
}

// badFields are values of other fields that cannot be used.
var badFields = []badInput{
	{
		name: "quantity", expect: invalidSpec("InvalidQuantity", "spec.resources.limits.cpu", "one core"),
		spoil: func(server *v1beta1.MCPServer) { server.Spec.Resources.Limits.CPU = "one core" },
	},
	{
		name: "huge-quantity", expect: invalidSpec("InvalidQuantity", "spec.resources.limits.memory", "1e999999999"),
		spoil: func(server *v1beta1.MCPServer) { server.Spec.Resources.Limits.Memory = "1e999999999" },
	},
	{
		name: "negative-quantity", expect: invalidSpec("InvalidQuantity", "spec.resources", "memory", "-1Mi"),
		spoil: func(server *v1beta1.MCPServer) { server.Spec.Resources.Requests.Memory = "-1Mi" },
	},
	{
		name: "request-above", expect: invalidSpec("InvalidQuantity", "spec.resources", "memory", "128Mi", "64Mi"),
		spoil: func(server *v1beta1.MCPServer) {
			server.Spec.Resources.Requests.Memory, server.Spec.Resources.Limits.Memory = "128Mi", "64Mi"
		},
	},
	{
		name: "line-break", expect: invalidSpec("InvalidEnv", "spec.env[0].value", `"GREETING"`, "line break"),
		spoil: harness.Environment("GREETING", "hello\nworld"),
	},
	{
		name: "spec-env-name", expect: invalidSpec("InvalidEnv", "spec.env[0].name", "A=B"),
		spoil: harness.Environment("A=B", "x"),
	},
	{
		name: "proxy-env-name", expect: invalidSpec("InvalidEnv", "proxyDeployment.env[0].name"),
		spoil: overriding(func(d *v1beta1.ProxyDeploymentOverrides) { d.Env = []v1beta1.EnvVar{{Name: "", Value: "x"}} }),
	},
	{
		name: "image", expect: invalidSpec("InvalidImage", "spec.image"),
		spoil: func(server *v1beta1.MCPServer) { server.Spec.Image = "" },
	},
	{
		name: "account", expect: invalidSpec("InvalidServiceAccount", "spec.serviceAccount", "No Such"),
		spoil: func(server *v1beta1.MCPServer) { server.Spec.ServiceAccount = new("No Such") },
	},
	{
		name: "secret", expect: invalidSpec("InvalidSecretRef", "spec.secrets[0].name", "No Such"),
		spoil: func(server *v1beta1.MCPServer) {
			server.Spec.Secrets = []v1beta1.SecretRef{{Name: "No Such", Key: "token"}}
		},
	},
	{
		name: "host-path", expect: invalidSpec("InvalidVolume", "spec.volumes[0].hostPath", "relative"),
		spoil: func(server *v1beta1.MCPServer) {
			server.Spec.Volumes = []v1beta1.Volume{{Name: "data", HostPath: "relative", MountPath: "/data"}}
		},
	},
	{
		name: "same-mount", expect: invalidSpec("InvalidVolume", "spec.volumes[1].mountPath", "/data"),
		spoil: func(server *v1beta1.MCPServer) {
			server.Spec.Volumes = []v1beta1.Volume{
				{Name: "a", HostPath: "/a", MountPath: "/data"}, {Name: "b", HostPath: "/b", MountPath: "/data"},
			}
		},
	},
	{
		name: "label", expect: invalidSpec("InvalidMetadata", "proxyDeployment.labels", "no good"),
		spoil: overriding(func(d *v1beta1.ProxyDeploymentOverrides) { d.Labels = map[string]string{"no good": "x"} }),
	},
	{
		name: "label-value", expect: invalidSpec("InvalidMetadata", "podTemplateMetadataOverrides.labels"),
		spoil: overriding(func(d *v1beta1.ProxyDeploymentOverrides) {
			d.PodTemplateMetadataOverrides = &v1beta1.ResourceMetadataOverrides{Labels: map[string]string{"team": "a b"}}
		}),
	},
	{
		name: "annotation", expect: invalidSpec("InvalidMetadata", "proxyService.annotations", "no/good/key"),
		spoil: func(server *v1beta1.MCPServer) {
			server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{
				ProxyService: &v1beta1.ResourceMetadataOverrides{Annotations: map[string]string{"no/good/key": "x"}},
			}
		},
	},
	{name: "duration", spoil: limiting("every minute"), expect: harness.Expectation{
		Condition: v1beta1.ConditionRateLimitConfigValid, Status: metav1.ConditionFalse, Reason: "InvalidRateLimit",
		Message: []string{"spec.rateLimiting.shared.refillPeriod", "every minute"},
	}},
	{name: "zero-duration", spoil: limiting("0s"), expect: harness.Expectation{
		Condition: v1beta1.ConditionRateLimitConfigValid, Status: metav1.ConditionFalse, Reason: "InvalidRateLimit",
		Message: []string{"spec.rateLimiting.shared.refillPeriod", "0s"},
	}},
	{name: "policies", expect: harness.Expectation{
		Condition: v1beta1.ConditionAuthzConfigValidated, Status: metav1.ConditionFalse, Reason: "InvalidAuthzConfig", Message: []string{"spec.authzConfig.inline"},
	}, spoil: func(server *v1beta1.MCPServer) {
		server.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{
			Type: "inline", Inline: &v1beta1.InlineAuthzConfig{Policies: []string{"permit(principal, action, resource);"}, EntitiesJSON: "{"},
		}
	}},
}

func overriding(change func(*v1beta1.ProxyDeploymentOverrides)) harness.Change {
	return func(server *v1beta1.MCPServer) {
		overrides := &v1beta1.ProxyDeploymentOverrides{}
		change(overrides)
		server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: overrides}
	}
}

func limiting(period string) harness.Change {
	return func(server *v1beta1.MCPServer) {
		server.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: "redis", Address: "redis:6379"}
		server.Spec.RateLimiting = &v1beta1.RateLimitConfig{Shared: &v1beta1.RateLimitBucket{MaxTokens: 1, RefillPeriod: period}}
	}
}

func notFound(condition, reason, field, kind string) harness.Expectation {
	return harness.Expectation{Condition: condition, Status: metav1.ConditionFalse, Reason: reason, Message: []string{
		"spec." + field, kind, `"shared"`, "does not exist",
	}}
}

// missingReferences name custom resources that do not exist.
var missingReferences = []badInput{
	{
		name: "oidc-ref", held: true, expect: notFound(v1beta1.ConditionOIDCConfigRefValidated,
			"OIDCConfigRefNotFound", "oidcConfigRef", "MCPOIDCConfig"),
		spoil: func(server *v1beta1.MCPServer) {
			server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "shared", Audience: "mcp"}
		},
	},
	{
		name: "authz-ref", held: true, expect: notFound(v1beta1.ConditionAuthzConfigRefValidated,
			"AuthzConfigRefNotFound", "authzConfigRef", "MCPAuthzConfig"),
		spoil: func(server *v1beta1.MCPServer) {
			server.Spec.AuthzConfigRef = &v1beta1.MCPAuthzConfigReference{Name: "shared"}
		},
	},
	{
		name: "external-auth-ref", held: true, expect: notFound(v1beta1.ConditionExternalAuthConfigValidated,
			"ExternalAuthConfigNotFound", "externalAuthConfigRef", "MCPExternalAuthConfig"),
		spoil: func(server *v1beta1.MCPServer) {
			server.Spec.ExternalAuthConfigRef = &v1beta1.ExternalAuthConfigRef{Name: "shared"}
		},
	},
	{
		name: "auth-server-ref", held: true, expect: notFound(v1beta1.ConditionAuthServerRefValidated,
			"AuthServerRefNotFound", "authServerRef", "MCPExternalAuthConfig"),
		spoil: func(server *v1beta1.MCPServer) {
			server.Spec.AuthServerRef = &v1beta1.AuthServerRef{Kind: "MCPExternalAuthConfig", Name: "shared"}
		},
	},
	{
		name: "webhook-ref", held: true, expect: notFound(v1beta1.ConditionWebhookConfigValidated,
			"WebhookConfigNotFound", "webhookConfigRef", "MCPWebhookConfig"),
		spoil: func(server *v1beta1.MCPServer) {
			server.Spec.WebhookConfigRef = &v1beta1.WebhookConfigRef{Name: "shared"}
		},
	},
	{
		name: "telemetry-ref", held: true, expect: notFound(v1beta1.ConditionTelemetryConfigRefValidated,
			"TelemetryConfigRefNotFound", "telemetryConfigRef", "MCPTelemetryConfig"),
		spoil: func(server *v1beta1.MCPServer) {
			server.Spec.TelemetryConfigRef = &v1beta1.MCPTelemetryConfigReference{Name: "shared"}
		},
	},
	{
		name: "tool-ref", held: true, expect: notFound(v1beta1.ConditionToolConfigRefValidated,
			"ToolConfigRefNotFound", "toolConfigRef", "MCPToolConfig"),
		spoil: func(server *v1beta1.MCPServer) {
			server.Spec.ToolConfigRef = &v1beta1.ToolConfigRef{Name: "shared"}
		},
	},
}

func refused(resource, name string, message ...string) harness.Expectation {
	return harness.Expectation{Condition: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: "Invalid", Message: append(message, resource+"/"+name)}
}

// refusedByServer are values that the operator passes on and the API server's validation refuses.
var refusedByServer = []badInput{
	{
		name: "dns-policy", refused: harness.Backend, spoil: harness.PodTemplate(`{"spec":{"dnsPolicy":"Carrier Pigeon"}}`),
		expect: refused("statefulset.apps", "dns-policy", "dnsPolicy", "Carrier Pigeon"),
	},
	{
		name: "host-port", refused: harness.Backend, spoil: harness.PodTemplate(`{"spec":{"hostNetwork":true,"containers":[
			{"name":"a","image":"example.com/side:1","ports":[{"containerPort":7000,"hostPort":7000}]},
			{"name":"b","image":"example.com/side:1","ports":[{"containerPort":7000,"hostPort":7000}]},{"name":"mcp"}]}}`),
		expect: refused("statefulset.apps", "host-port", "hostPort", "7000"),
	},
	{
		name: "two-sources", refused: harness.Backend, spoil: harness.PodTemplate(`{"spec":{"volumes":[{"name":"data","emptyDir":{},"hostPath":{"path":"/data"}}]}}`),
		expect: refused("statefulset.apps", "two-sources", "volumes"),
	},
	{
		name: "spread", refused: harness.Backend, spoil: harness.PodTemplate(`{"spec":{"topologySpreadConstraints":[
			{"maxSkew":0,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{}}]}}`),
		expect: refused("statefulset.apps", "spread", "maxSkew"),
	},
	{name: "apparmor", refused: harness.Proxy, spoil: overriding(func(d *v1beta1.ProxyDeploymentOverrides) {
		d.PodTemplateMetadataOverrides = &v1beta1.ResourceMetadataOverrides{Annotations: map[string]string{
			"container.apparmor.security.beta.kubernetes.io/toolhive": "whatever",
		}}
	}), expect: refused("deployment.apps", "apparmor", "apparmor", "whatever")},
}
