// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/test/harness"
)

// member is one MCPServer of the fleet, and its history until it is taken over.
type member struct {
	// server is what is created.
	server *v1beta1.MCPServer
	// before are objects, as YAML, that are there before it.
	before string
	// history is what others do to it and its children once it runs, one after the other. ToolHive has come to rest
	// again before the next.
	history []deed
	// again is what the objects in before do to every MCPServer of its name, also to a new one, in their own time; nil for nothing.
	again *deed
	// contested are the fields of components, by their paths, that somebody else than ToolHive has given other values than
	// Freehold's.
	contested map[harness.Component]string
	// settledBy are the managers whose claims on a component change when that is settled.
	settledBy map[harness.Component]string
	// free are fields that somebody has given other values than they would have, and that nobody owns.
	free map[harness.Component]string
	// uncovered tells that Freehold refuses this MCPServer, for a feature of ToolHive's that it does not have.
	uncovered bool
	// unanswered tells that a client without a token gets no session.
	unanswered bool
}

// deed is something that somebody does to an MCPServer, or to its children.
type deed struct {
	what string
	do   func(t *testing.T, w *world, server string)
}

// gate is the generation in the StatefulSet's pod template at the end of its history, as ToolHive's runner counts: that
// of the MCPServer. One that was never edited has 1, which does not keep a runner from writing.
func (m *member) gate() int {
	gate := 1
	for _, d := range m.history {
		if d.what == edited {
			gate++
		}
	}
	return gate
}

// edited is a change of the MCPServer's spec.
const edited = "its spec is edited"

// fleet returns what an installation of ToolHive may look like after some time.
func fleet() []*member {
	http, sse, stdio := v1beta1.TransportStreamableHTTP, v1beta1.TransportSSE, v1beta1.TransportStdio
	return []*member{
		{server: tested("plain", http)},
		{server: tested("plain-sse", sse, func(server *v1beta1.MCPServer) { server.Spec.ProxyPort = 9100 })},
		{server: tested("plain-stdio", stdio)},
		{
			server:  tested("edited", http, harness.Environment("LEVEL", "0")),
			history: []deed{edit(level("1")), edit(level("2"))},
		},
		{
			server: tested("edited-stdio", stdio, harness.Environment("LEVEL", "0"), func(server *v1beta1.MCPServer) {
				server.Spec.ProxyMode = sse
			}),
			history: []deed{edit(level("1"))},
		},
		{server: tested("overrides", http, overrides), history: []deed{edit(addProxyLabel), restartedByHand}},
		{server: tested("sidecar", sse, harness.PodTemplate(podWithSidecar)), history: []deed{edit(audited)}},
		{server: tested("secrets", http, secrets, harness.Environment("LEVEL", "0")), before: secretYAML},
		{server: tested("policies", http, harness.InlineAuthorization, audited), history: []deed{edit(proxyResources)}},
		{
			server: tested("policies-elsewhere", http, authorizationElsewhere, harness.ServiceAccountOfUser),
			before: authorizationYAML,
		},
		{
			server:  tested("scaled", http),
			before:  autoscalerYAML,
			history: []deed{edit(audited), autoscaled, scaledBackend},
			again:   &autoscaled,
			free:    map[harness.Component]string{harness.Backend: ".spec.replicas", harness.ServerItself: ".status.readyReplicas"},
		},
		{server: tested("numbers", http, harness.Replicas(2, 2)), history: []deed{edit(audited)}},
		{
			// ToolHive's runner ends when there is no backend pod for a while, and writes its image again when it starts
			// anew. Of two pods one is always there.
			server: tested("by-hand", http, harness.Replicas(1, 2)),
			history: []deed{
				edit(audited), restartedByHand, labelledByHand, annotatedByHand, editedByHand, imageByHand,
			},
			contested: map[harness.Component]string{
				harness.Proxy:   ".spec.template.spec.terminationGracePeriodSeconds",
				harness.Backend: ".spec.template.spec.containers.mcp.image",
			},
			settledBy: map[harness.Component]string{harness.Proxy: "kubectl-edit", harness.ServerItself: "kubectl-annotate"},
		},
		{server: tested("injected", sse), history: []deed{edit(audited), negAnnotated, sidecarInjected}},
		{
			server: tested("guarded", http, func(server *v1beta1.MCPServer) {
				server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "issuer", Audience: "mcp"}
				server.Spec.WebhookConfigRef = &v1beta1.WebhookConfigRef{Name: "halfway"}
			}),
			before: oidcYAML + halfwayYAML, uncovered: true, unanswered: true,
		},
	}
}

// newer returns what only an installation of a newer ToolHive has: fields that older ones do not know.
func newer(t *testing.T) []*member {
	t.Helper()
	if !harness.ToolHiveAtLeast(t, sinceReadTimeout) {
		return nil
	}
	return []*member{{
		server: tested("newer", v1beta1.TransportStreamableHTTP, func(server *v1beta1.MCPServer) {
			server.Spec.MaxRequestBodySize, server.Spec.ProxyReadTimeout = 1<<20, "90s"
			server.Spec.Secrets = []v1beta1.SecretRef{
				{Name: "pair", Key: "token", TargetEnvName: "API_TOKEN"}, {Name: "pair", Key: "user", TargetEnvName: "API_USER"},
			}
			server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
				NodeSelector: map[string]string{corev1.LabelOSStable: "linux"},
				Tolerations:  []v1beta1.Toleration{{Key: "example.com/tools", Operator: "Exists"}},
			}}
		}),
		before:  `{apiVersion: v1, kind: Secret, metadata: {name: pair}, stringData: {token: not-secret, user: nobody}}`,
		history: []deed{edit(audited)},
	}}
}

// tested is an MCPServer with the test server's image.
func tested(name string, transport v1beta1.Transport, changes ...harness.Change) *v1beta1.MCPServer {
	return harness.Server(name, transport, append([]harness.Change{func(server *v1beta1.MCPServer) {
		server.Spec.Image = images.Server
	}}, changes...)...)
}

func level(value string) harness.Change {
	return func(server *v1beta1.MCPServer) { server.Spec.Env = []v1beta1.EnvVar{{Name: "LEVEL", Value: value}} }
}

func audited(server *v1beta1.MCPServer) {
	server.Spec.Audit = &v1beta1.AuditConfig{Enabled: true}
}

func proxyResources(server *v1beta1.MCPServer) {
	server.Spec.Resources.Requests.CPU = "10m"
	server.Spec.Resources.Requests.Memory = "64Mi"
}

func overrides(server *v1beta1.MCPServer) {
	server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{
		ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
			ResourceMetadataOverrides: v1beta1.ResourceMetadataOverrides{
				Annotations: map[string]string{"example.com/owner": "platform"},
				Labels:      map[string]string{"team": "search"},
			},
			PodTemplateMetadataOverrides: &v1beta1.ResourceMetadataOverrides{
				Annotations: map[string]string{"example.com/scrape": "true"},
				Labels:      map[string]string{"cost-centre": "42"},
			},
			Env: []v1beta1.EnvVar{{Name: "TOOLHIVE_DEBUG", Value: "false"}, {Name: "HOME", Value: "/tmp"}},
		},
		ProxyService: &v1beta1.ResourceMetadataOverrides{
			Annotations: map[string]string{"example.com/exposed": "no"},
			Labels:      map[string]string{"team": "search"},
		},
	}
}

func addProxyLabel(server *v1beta1.MCPServer) {
	server.Spec.ResourceOverrides.ProxyDeployment.Labels["tier"] = "gold"
}

// podWithSidecar has a sidecar, a volume, and settings of the MCP server's own container.
const podWithSidecar = `{
	"metadata": {"annotations": {"example.com/backup": "no"}, "labels": {"zone": "inner"}},
	"spec": {
		"volumes": [{"name": "cache", "emptyDir": {}}],
		"tolerations": [{"key": "example.com/mcp", "operator": "Exists"}],
		"containers": [
			{"name": "helper", "image": "` + images.NextServer + `", "env": [
				{"name": "MCP_TRANSPORT", "value": "streamable-http"}, {"name": "MCP_PORT", "value": "9901"}]},
			{"name": "mcp", "resources": {"requests": {"cpu": "5m"}}, "volumeMounts": [{"name": "cache", "mountPath": "/cache"}]}
		]
	}
}`

func secrets(server *v1beta1.MCPServer) {
	server.Spec.Secrets = []v1beta1.SecretRef{{Name: "credentials", Key: "token", TargetEnvName: "API_TOKEN"}}
}

const secretYAML = `{apiVersion: v1, kind: Secret, metadata: {name: credentials}, stringData: {token: not-secret}}`

func authorizationElsewhere(server *v1beta1.MCPServer) {
	server.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{
		Type: v1beta1.AuthzConfigTypeConfigMap, ConfigMap: &v1beta1.ConfigMapAuthzRef{Name: "policies"},
	}
}

const authorizationYAML = `
apiVersion: v1
kind: ConfigMap
metadata: {name: policies}
data:
  authz.json: |
    {"version": "1.0", "type": "cedarv1",
     "cedar": {"policies": ["permit(principal, action, resource);"], "entities_json": "[]"}}
`

// autoscalerYAML scales at once: it needs no metrics to see that there are fewer pods than its least number.
const autoscalerYAML = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaled}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}
  minReplicas: 2
  maxReplicas: 3
`

const oidcYAML = `
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPOIDCConfig
metadata: {name: issuer}
spec:
  type: inline
  inline:
    issuer: https://issuer.freehold.invalid
    jwksUrl: https://issuer.freehold.invalid/keys
`

// halfwayYAML is a webhook with a client certificate and no key, which ToolHive calls without either, and Freehold refuses.
const halfwayYAML = `---
apiVersion: v1
kind: Secret
metadata:
  name: halfway
stringData:
  tls.crt: a certificate
---
apiVersion: toolhive.stacklok.dev/v1alpha1
kind: MCPWebhookConfig
metadata:
  name: halfway
spec:
  validating:
  - name: halfway
    url: https://webhook.example.com
    failurePolicy: ignore
    tlsConfig:
      clientCertSecretRef:
        name: halfway
        key: tls.crt
`
