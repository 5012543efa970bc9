// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// oddity is something that works otherwise than it was written.
type oddity struct {
	name   string
	change harness.Change
	expect harness.Expectation
	// backend and proxy are variables that the containers then have, as name=value or name=secret/key.
	backend, proxy []string
	// harmless tells that no child changes, silent that it is worth no event.
	harmless, silent bool
}

func works(reason string, message ...string) harness.Expectation {
	return harness.Expectation{Condition: v1beta1.ConditionSpecValid, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

var oddities = []oddity{
	{
		name: "unknown-field", harmless: true,
		change: harness.PodTemplate(`{"spec":{"nodeSelektor":{"disk":"fast"},"containers":[{"name":"mcp","imagePolicy":"Always"}]}}`),
		expect: works("FieldsIgnored", "nodeSelektor", "spec.containers[0].imagePolicy"),
	},
	{
		name:    "unknown-beside-known",
		change:  harness.PodTemplate(`{"spec":{"nodeSelektor":{"disk":"fast"},"containers":[{"name":"mcp","env":[{"name":"A","value":"1"}]}]}}`),
		expect:  works("FieldsIgnored", "nodeSelektor"),
		backend: []string{"A=1"},
	},
	{
		name: "image-elsewhere", harmless: true,
		change: harness.PodTemplate(`{"spec":{"serviceAccountName":"other","containers":[{"name":"mcp","image":"example.com/other:1"}]}}`),
		expect: works("FieldsIgnored", "spec.serviceAccountName", "spec.containers[0].image"),
	},
	{
		name: "our-label", harmless: true,
		change: harness.PodTemplate(`{"metadata":{"labels":{"app":"theirs","toolhive":"false"},"annotations":{"toolhive.stacklok.dev/mcpserver-generation":"1"}}}`),
		expect: works("FieldsIgnored", "metadata.labels.app", "metadata.labels.toolhive", "metadata.annotations.toolhive.stacklok.dev/mcp"),
	},
	{
		name: "all-sources",
		change: func(server *v1beta1.MCPServer) {
			harness.PodTemplate(`{"spec":{"containers":[{"name":"mcp","env":[
				{"name":"A","value":"template"},{"name":"B","value":"template"},{"name":"C","value":"template"},
				{"name":"D","value":"first"},{"name":"D","value":"second"},{"name":"MCP_PORT","value":"1"}]}]}}`)(server)
			server.Spec.Secrets = []v1beta1.SecretRef{
				{Name: "one", Key: "key", TargetEnvName: "A"},
				{Name: "two", Key: "key", TargetEnvName: "B"},
				{Name: "three", Key: "key", TargetEnvName: "B"},
			}
			server.Spec.Env = []v1beta1.EnvVar{{Name: "A", Value: "env"}, {Name: "MCP_TRANSPORT", Value: "pigeon"}}
			server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
				Env: []v1beta1.EnvVar{{Name: "THV_MCPSERVER_GENERATION", Value: "7"}, {Name: "HOME", Value: "/home"}},
			}}
		},
		expect: works("DuplicatesMerged",
			`"A" of the backend`, `"B" of the backend`, `"MCP_TRANSPORT" of the backend`, `"MCP_PORT" of the backend`, "env[D]",
			`"THV_MCPSERVER_GENERATION" of the proxy`, "the operator", "spec.env", "spec.secrets", "spec.podTemplateSpec"),
		backend: []string{"A=env", "B=three/key", "C=template", "D=second", "MCP_TRANSPORT=streamable-http", "MCP_PORT=9000"},
		proxy:   []string{"THV_MCPSERVER_GENERATION=1", "HOME=/home"},
	},
	{
		name: "same-value-twice",
		change: func(server *v1beta1.MCPServer) {
			harness.PodTemplate(`{"spec":{"containers":[{"name":"mcp","env":[{"name":"A","value":"1"}]}]}}`)(server)
			server.Spec.Env = []v1beta1.EnvVar{{Name: "A", Value: "1"}}
		},
		expect:  works("Valid"),
		backend: []string{"A=1"}, silent: true,
	},
	{
		name: "group", harmless: true,
		change: func(server *v1beta1.MCPServer) { server.Spec.GroupRef = &v1beta1.MCPGroupRef{Name: "shared"} },
		expect: harness.Expectation{Condition: v1beta1.ConditionGroupRefValidated, Status: metav1.ConditionFalse, Reason: "GroupRefNotFound", Message: []string{`"shared"`}},
	},
	{
		name: "permission-profile", harmless: true,
		change: func(server *v1beta1.MCPServer) {
			server.Spec.PermissionProfile = &v1beta1.PermissionProfileRef{Type: "configmap", Name: "absent", Key: "../../etc/passwd"}
		},
		expect: works("PermissionProfileUnsupported", "spec.permissionProfile", "NetworkPolicy"),
	},
	{
		name:   "proxy-resources",
		change: func(server *v1beta1.MCPServer) { server.Spec.Resources.Limits = v1beta1.ResourceList{Memory: "1Gi"} },
		expect: works("ProxyOnly", "spec.resources", `spec.podTemplateSpec: {"spec":{"containers":[{"name":"mcp","resources":{"limits":{"memory":"1Gi"}}}]}}`),
	},
	{
		name: "proxy-volumes",
		change: func(server *v1beta1.MCPServer) {
			server.Spec.Volumes = []v1beta1.Volume{{Name: "data", HostPath: "/srv", MountPath: "/data"}}
		},
		expect: works("ProxyOnly", "spec.volumes[0]", `"volumeMounts":[{"name":"data","mountPath":"/data"}]`),
	},
	{
		name: "resources-and-volumes-of-both", silent: true,
		change: func(server *v1beta1.MCPServer) {
			server.Spec.Resources.Limits = v1beta1.ResourceList{Memory: "1Gi"}
			server.Spec.Volumes = []v1beta1.Volume{{Name: "data", HostPath: "/srv", MountPath: "/data"}}
			harness.PodTemplate(`{"spec":{"volumes":[{"name":"data","hostPath":{"path":"/srv"}}],"containers":[{"name":"mcp",
				"resources":{"limits":{"memory":"2Gi"}},"volumeMounts":[{"name":"data","mountPath":"/data"}]}]}}`)(server)
		},
		expect: works("Valid"),
	},
	{
		name:   "no-server-container",
		change: harness.PodTemplate(`{"spec":{"containers":[{"name":"server","image":"example.com/mcp:1"}]}}`),
		expect: works("NoServerContainer", `"server"`, "none called mcp"),
	},
	{
		name: "sidecar", silent: true,
		change: harness.PodTemplate(`{"spec":{"containers":[{"name":"side","image":"example.com/side:1"},{"name":"mcp"}]}}`),
		expect: works("Valid"),
	},
	{
		name: "pull-secrets-of-the-proxy",
		change: func(server *v1beta1.MCPServer) {
			server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
				ImagePullSecrets: []v1beta1.LocalObjectReference{{Name: "registry"}},
			}}
			harness.PodTemplate(`{"spec":{"imagePullSecrets":[{"name":"other"}]}}`)(server)
		},
		expect: works("PullSecretsOfOneTier", `not "registry"`, "spec.podTemplateSpec.spec.imagePullSecrets"),
	},
	{
		// It would keep ToolHive's operator from reading any MCPServer.
		name: "days", silent: true,
		change: func(server *v1beta1.MCPServer) { server.Spec.ProxyReadTimeout = "2d" },
		expect: works("Valid"),
	},
	{
		name: "restart-at-noon", harmless: true,
		change: func(server *v1beta1.MCPServer) {
			server.Annotations = map[string]string{v1beta1.AnnotationRestartedAt: "noon"}
		},
		expect: works("RestartRequestIgnored", v1beta1.AnnotationRestartedAt, `"noon"`),
	},
}

// TestOddInput gives MCPServers what works otherwise than it was written. They are told of it once and go on.
func TestOddInput(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := newStage(t, env)
	first := s.Operate(t)
	for _, c := range oddities {
		s.Create(t, harness.HTTPServer(c.name))
	}
	for _, c := range oddities {
		s.AwaitStatus(t, c.name, harness.Fine...)
		s.AwaitSettled(t, c.name)
	}
	s.AwaitRest(t)
	good := s.ChildVersions(t)
	for _, c := range oddities {
		s.Edit(t, c.name, c.change)
	}
	for _, c := range oddities {
		t.Run(c.name, func(t *testing.T) {
			s.AwaitStatus(t, c.name, c.expect, harness.Fine[0])
			s.AwaitSettled(t, c.name)
			if !c.silent {
				s.AwaitOneWarning(t, c.name, c.expect)
			}
			s.hasVariables(t, c)
		})
	}
	s.AwaitRest(t)
	s.Quiet(t, s.Mark(t), harness.Calm)
	odd := s.ChildVersions(t)
	for _, c := range oddities {
		if changed := good[c.name].Changed(odd[c.name]); c.harmless && len(changed) > 0 {
			t.Errorf("%s: these children changed: %v", c.name, changed)
		}
	}

	restarted := s.Mark(t)
	s.ReplaceOperator(t, first)
	s.AwaitRest(t)
	if tried := s.Writes(t, restarted); len(tried) > 0 {
		t.Errorf("a restart costs writes: %v", tried)
	}
	for _, c := range oddities {
		if !c.silent {
			s.AwaitOneWarning(t, c.name, c.expect)
		}
		s.Edit(t, c.name, repair)
	}
	for _, c := range oddities {
		s.AwaitStatus(t, c.name, harness.Fine...)
		s.AwaitImage(t, c.name, harness.OtherImage)
	}
	warnings, err := s.Warnings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range oddities {
		if c.silent && len(warnings[c.name]) > 0 {
			t.Errorf("%s: there are the events %+v", c.name, warnings[c.name])
		}
	}
}

// hasVariables fails the test unless the containers have the variables, each once.
func (s *stage) hasVariables(t *testing.T, c oddity) {
	t.Helper()
	backend, err := s.Core.AppsV1().StatefulSets(s.Name).Get(t.Context(), c.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := s.Core.AppsV1().Deployments(s.Name).Get(t.Context(), c.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tier := range []struct {
		pod    corev1.PodSpec
		wanted []string
	}{{backend.Spec.Template.Spec, c.backend}, {proxy.Spec.Template.Spec, c.proxy}} {
		counts := map[string]int{}
		for _, v := range tier.pod.Containers[0].Env {
			text := v.Name + "=" + v.Value
			if from := v.ValueFrom; from != nil && from.SecretKeyRef != nil {
				text = fmt.Sprintf("%s=%s/%s", v.Name, from.SecretKeyRef.Name, from.SecretKeyRef.Key)
			}
			counts[text]++
		}
		for _, wanted := range tier.wanted {
			if counts[wanted] != 1 {
				t.Errorf("container %s has %q %d times, in %v", tier.pod.Containers[0].Name, wanted, counts[wanted], counts)
			}
		}
	}
}
