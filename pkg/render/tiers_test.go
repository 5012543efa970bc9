// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// change is one of an MCPServer.
type change = func(*v1beta1.MCPServer)

func withResources(s *v1beta1.MCPServer) {
	s.Spec.Resources.Limits = v1beta1.ResourceList{CPU: "0.5"}
}

func withVolumes(s *v1beta1.MCPServer) {
	s.Spec.Volumes = []v1beta1.Volume{
		{Name: "data", HostPath: "/srv/data", MountPath: "/data/", ReadOnly: true}, {Name: "logs", HostPath: "/var/logs", MountPath: "/logs"},
	}
}

// withPullSecrets gives the proxy pull secrets.
func withPullSecrets(names ...string) change {
	return func(s *v1beta1.MCPServer) {
		d := &v1beta1.ProxyDeploymentOverrides{}
		for _, name := range names {
			d.ImagePullSecrets = append(d.ImagePullSecrets, v1beta1.LocalObjectReference{Name: name})
		}
		s.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: d}
	}
}

// What one tier alone has is told, unless podTemplateSpec has its like for the other.
func TestNoticesTellWhatOneTierAloneHas(t *testing.T) {
	const (
		has  = "The proxy alone has "
		give = ", as in ToolHive; the MCP server's container has nothing like it. To give it to that container too, add to spec.podTemplateSpec: "
		list = "spec.podTemplateSpec.spec.imagePullSecrets"
	)
	account := func(s *v1beta1.MCPServer) { s.Spec.ServiceAccount = new("mine") }
	private := func(s *v1beta1.MCPServer) { s.Spec.Image = "registry.example.com/fetch:1" }
	mirror, sibling := Options{RunnerImage: "registry.example.com/toolhive/proxyrunner:v0.63.0"}, Options{RunnerImage: "registry.example.com.test/proxyrunner:v0.63.0"}
	for name, c := range map[string]struct {
		changes         []change
		opts            Options
		reason, message string
	}{
		"nothing": {},
		"resources": {
			changes: []change{withResources}, reason: "ProxyOnly",
			message: has + "spec.resources" + give + `{"spec":{"containers":[{"name":"mcp","resources":{"limits":{"cpu":"500m"}}}]}}`,
		},
		"resources beside the container": {
			changes: []change{withResources, withPodTemplate("{spec: {containers: [{name: mcp, env: [{name: A}]}]}}")}, reason: "ProxyOnly",
			message: has + "spec.resources" + give + `{"spec":{"containers":[{"name":"mcp","resources":{"limits":{"cpu":"500m"}}}]}}`,
		},
		"resources of both":    {changes: []change{withResources, withPodTemplate("{spec: {containers: [{name: mcp, resources: {requests: {memory: 1Gi}}}]}}")}},
		"resources of the pod": {changes: []change{withResources, withPodTemplate("{spec: {resources: {limits: {cpu: 1}}}}")}},
		"volumes": {changes: []change{withVolumes}, reason: "ProxyOnly", message: has + "spec.volumes[0], spec.volumes[1]" + give +
			`{"spec":{"volumes":[{"name":"data","hostPath":{"path":"/srv/data"}},{"name":"logs","hostPath":{"path":"/var/logs"}}],"containers":[{"name":"mcp",` +
			`"volumeMounts":[{"name":"data","readOnly":true,"mountPath":"/data/"},{"name":"logs","mountPath":"/logs"}]}]}}`},
		"a volume of both": {
			changes: []change{withVolumes, withPodTemplate("{spec: {volumes: [{name: d, emptyDir: {}}], containers: [{name: mcp, volumeMounts: [{name: d, mountPath: /data}]}]}}")},
			reason:  "ProxyOnly",
			message: has + "spec.volumes[1]" + give + `{"spec":{"volumes":[{"name":"logs","hostPath":{"path":"/var/logs"}}],"containers":[{"name":"mcp","volumeMounts":[{"name":"logs","mountPath":"/logs"}]}]}}`,
		},
		"volumes of both": {changes: []change{withVolumes, withPodTemplate("{spec: {volumes: [{name: data, emptyDir: {}}, {name: logs, emptyDir: {}}], " +
			"containers: [{name: mcp, volumeMounts: [{name: data, mountPath: /d}, {name: logs, mountPath: /l}]}]}}")}},
		"a container of another name": {
			changes: []change{withPodTemplate("{spec: {containers: [{name: server, image: x}]}}")}, reason: "NoServerContainer",
			message: `spec.podTemplateSpec.spec.containers has "server" and none called mcp, so they run beside the MCP server and set nothing of it. ` +
				`If one is meant to be the MCP server, call it mcp. If not, add {"name":"mcp"} after them, which changes no pod.`,
		},
		"a sidecar":         {changes: []change{withPodTemplate("{spec: {containers: [{name: server, image: x}, {name: mcp}]}}")}},
		"an init container": {changes: []change{withPodTemplate("{spec: {initContainers: [{name: server, image: x}]}}")}},

		"pull secrets of the proxy reach the MCP server by its ServiceAccount": {changes: []change{withPullSecrets("a")}},
		"pull secrets of the proxy and others": {
			changes: []change{withPullSecrets("a", "b", ""), withPodTemplate("{spec: {imagePullSecrets: [{name: b}]}}")}, reason: "PullSecretsOfOneTier",
			message: "The MCP server's pods have the pull secrets of " + list + ` alone, and not "a" of spec.resourceOverrides.proxyDeployment.imagePullSecrets. ` +
				"Add to the former what their images need.",
		},
		"pull secrets of both": {changes: []change{withPullSecrets("a"), withPodTemplate("{spec: {imagePullSecrets: [{name: a}]}}"), account}},
		"pull secrets of the proxy and a ServiceAccount": {
			changes: []change{withPullSecrets("a"), account}, reason: "PullSecretsOfOneTier",
			message: "The MCP server's pods have the pull secrets of their ServiceAccount, which is not Freehold's, and not \"a\" of " +
				"spec.resourceOverrides.proxyDeployment.imagePullSecrets. Add what their images need to that ServiceAccount and to " + list + ".",
		},
		"pull secrets of the MCP server": {changes: []change{private, withPodTemplate("{spec: {imagePullSecrets: [{name: a}]}}")}, opts: sibling},
		"pull secrets of the MCP server, for the registry of both": {
			changes: []change{private, withPodTemplate("{spec: {imagePullSecrets: [{name: a}]}}")}, opts: mirror,
			reason: "PullSecretsOfOneTier",
			message: "The proxy's pods have none of the pull secrets of " + list + `, and their image "registry.example.com/toolhive/proxyrunner:v0.63.0" is of the same registry. ` +
				"Add to spec.resourceOverrides.proxyDeployment.imagePullSecrets what it needs.",
		},
		"pull secrets of the MCP server, for ToolHive's registry": {changes: []change{
			func(s *v1beta1.MCPServer) { s.Spec.Image = "ghcr.io/mine/fetch:1" }, withPodTemplate("{spec: {imagePullSecrets: [{name: a}]}}"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []Problem
			if c.reason != "" {
				want = []Problem{{v1beta1.ConditionSpecValid, c.reason, c.message}}
			}
			result := mustRender(t, Input{Server: newServer(c.changes...)}, c.opts)
			if diff := cmp.Diff(want, result.Notices); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
		})
	}
}

// The podTemplateSpec of a notice does what was meant, and the notice is gone.
func TestThePodTemplateOfANoticeGivesTheOtherTierTheSame(t *testing.T) {
	result := renderServer(t, withResources, withVolumes)
	_, template, _ := strings.Cut(result.Notices[0].Message, "spec.podTemplateSpec: ")
	result = renderServer(t, withResources, withVolumes, withPodTemplate(template))
	if len(result.Notices) > 0 {
		t.Errorf("there are still %+v", result.Notices)
	}
	server, proxy := mcpContainer(t, result), deploymentOf(t, result).Spec.Template.Spec.Containers[0]
	if diff := cmp.Diff(proxy.Resources, server.Resources); diff != "" {
		t.Errorf("resources (-proxy +server):\n%s", diff)
	}
	for _, mount := range server.VolumeMounts {
		if text, _ := yaml.Marshal(proxy.VolumeMounts); !strings.Contains(string(text), *mount.MountPath) {
			t.Errorf("the proxy does not mount %s", *mount.MountPath)
		}
	}
	if len(server.VolumeMounts) != 2 {
		t.Errorf("it mounts %d volumes, want 2", len(server.VolumeMounts))
	}
}

// Adding the container that a notice asks for changes no pod.
func TestNamingTheServersContainerLastChangesNoPod(t *testing.T) {
	without := statefulSetOf(t, renderServer(t, withPodTemplate("{spec: {containers: [{name: side, image: x}]}}")))
	with := statefulSetOf(t, renderServer(t, withPodTemplate("{spec: {containers: [{name: side, image: x}, {name: mcp}]}}")))
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("StatefulSet (-without +with):\n%s", diff)
	}
}

// The Service between the tiers has no affinity where the spec says None and its sessions need none. Where they are kept does not matter.
func TestTheBackendServiceHasNoAffinityWhereTheSpecHasNone(t *testing.T) {
	redis := func(s *v1beta1.MCPServer) {
		s.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: v1beta1.SessionStorageRedis, Address: "redis:6379"}
	}
	none := func(s *v1beta1.MCPServer) { s.Spec.SessionAffinity = "None" }
	for name, c := range map[string]struct {
		changes []change
		want    corev1.ServiceAffinity
	}{
		"default":        {[]change{withTransport("streamable-http")}, corev1.ServiceAffinityClientIP},
		"None":           {[]change{withTransport("streamable-http"), none}, corev1.ServiceAffinityNone},
		"None, sse":      {[]change{withTransport("sse"), none}, corev1.ServiceAffinityClientIP},
		"Redis":          {[]change{withTransport("streamable-http"), redis}, corev1.ServiceAffinityClientIP},
		"Redis and None": {[]change{withTransport("streamable-http"), redis, none}, corev1.ServiceAffinityNone},
	} {
		t.Run(name, func(t *testing.T) {
			for _, intent := range renderServer(t, c.changes...).Intents {
				if intent.Child != inventory.BackendService {
					continue
				}
				spec := intent.Config.(*corev1ac.ServiceApplyConfiguration).Spec
				if *spec.SessionAffinity != c.want || (spec.SessionAffinityConfig != nil) != (c.want == corev1.ServiceAffinityClientIP) {
					t.Errorf("affinity %s with %+v, want %s", *spec.SessionAffinity, spec.SessionAffinityConfig, c.want)
				}
			}
		})
	}
}
