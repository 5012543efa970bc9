// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// envOf writes variables as name=value, or name<secret/key.
func envOf(list []corev1ac.EnvVarApplyConfiguration) []string {
	var texts []string
	for _, v := range list {
		switch {
		case v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil:
			texts = append(texts, *v.Name+"<"+*v.ValueFrom.SecretKeyRef.Name+"/"+*v.ValueFrom.SecretKeyRef.Key)
		case v.Value != nil:
			texts = append(texts, *v.Name+"="+*v.Value)
		default:
			texts = append(texts, *v.Name)
		}
	}
	return texts
}

// The user's variables, then the operator's that win, then those that the user may replace.
func TestTheOperatorsVariablesOfTheProxyWin(t *testing.T) {
	tail := []string{"XDG_CONFIG_HOME=/tmp", "HOME=/tmp", "TOOLHIVE_RUNTIME=kubernetes", "UNSTRUCTURED_LOGS=false"}
	generation, kubernetes := []string{"THV_MCPSERVER_GENERATION=1"}, []string{"OPERATOR_OPENSHIFT=false"}
	redis := &v1beta1.SessionStorageConfig{Provider: "redis", Address: "r", PasswordRef: &v1beta1.SecretKeyRef{Name: "s", Key: "k"}}
	operatorRedis := &Redis{Address: "d:1", PasswordSecret: "ds", PasswordKey: "dk"}
	for name, c := range map[string]struct {
		env     []v1beta1.EnvVar
		storage *v1beta1.SessionStorageConfig
		options Options
		want    [][]string
		notice  string
	}{
		"nothing":   {want: [][]string{generation, tail, kubernetes}},
		"openshift": {options: Options{OpenShift: true}, want: [][]string{generation, tail, {"OPERATOR_OPENSHIFT=true"}}},
		"the user's come first": {
			env:  []v1beta1.EnvVar{{Name: "B", Value: "1"}, {Name: "A"}},
			want: [][]string{{"B=1", "A"}, generation, tail, kubernetes},
		},
		"defaults can be replaced": {
			env:  []v1beta1.EnvVar{{Name: "HOME", Value: "/h"}, {Name: "OPERATOR_OPENSHIFT", Value: "true"}, {Name: "UNSTRUCTURED_LOGS"}},
			want: [][]string{{"HOME=/h", "OPERATOR_OPENSHIFT=true", "UNSTRUCTURED_LOGS"}, generation, {tail[0], tail[2]}},
		},
		"the generation cannot": {
			env:  []v1beta1.EnvVar{{Name: "THV_MCPSERVER_GENERATION", Value: "0"}},
			want: [][]string{generation, tail, kubernetes},
			notice: `Some names are given several different values: variable "THV_MCPSERVER_GENERATION" of the proxy ` +
				"(taken from the operator, not from spec.resourceOverrides.proxyDeployment.env).",
		},
		"the same value is no matter": {
			env:  []v1beta1.EnvVar{{Name: "THV_MCPSERVER_GENERATION", Value: "1"}, {Name: "A", Value: "1"}, {Name: "A", Value: "1"}},
			want: [][]string{{"A=1"}, generation, tail, kubernetes},
		},
		"twice from the user": {
			env:    []v1beta1.EnvVar{{Name: "A", Value: "1"}, {Name: "B"}, {Name: "A", Value: "2"}},
			want:   [][]string{{"B", "A=2"}, generation, tail, kubernetes},
			notice: `Some names are given several different values: variable "A" of the proxy (the last one is used).`,
		},
		"secrets of ToolHive": {
			env:  []v1beta1.EnvVar{{Name: "TOOLHIVE_SECRET_X", Value: "x"}},
			want: [][]string{{"TOOLHIVE_SECRET_X=x"}, generation, tail, {"TOOLHIVE_SECRETS_PROVIDER=environment"}, kubernetes},
		},
		"secrets of ToolHive are read from the environment": {
			env: []v1beta1.EnvVar{
				{Name: "TOOLHIVE_SECRETS_PROVIDER", Value: "encrypted"}, {Name: "TOOLHIVE_SECRET_X", Value: "x"}, {Name: "B", Value: "1"},
			},
			want: [][]string{{"TOOLHIVE_SECRET_X=x", "B=1"}, generation, tail, {"TOOLHIVE_SECRETS_PROVIDER=environment"}, kubernetes},
			notice: `Some names are given several different values: variable "TOOLHIVE_SECRETS_PROVIDER" of the proxy ` +
				"(taken from the operator, not from spec.resourceOverrides.proxyDeployment.env).",
		},
		"secrets of ToolHive, whose provider is right": {
			env:  []v1beta1.EnvVar{{Name: "TOOLHIVE_SECRETS_PROVIDER", Value: "environment"}, {Name: "TOOLHIVE_SECRET_X", Value: "x"}},
			want: [][]string{{"TOOLHIVE_SECRET_X=x"}, generation, tail, {"TOOLHIVE_SECRETS_PROVIDER=environment"}, kubernetes},
		},
		"a provider of secrets without secrets": {
			env:  []v1beta1.EnvVar{{Name: "TOOLHIVE_SECRETS_PROVIDER", Value: "encrypted"}},
			want: [][]string{{"TOOLHIVE_SECRETS_PROVIDER=encrypted"}, generation, tail, kubernetes},
		},
		"redis": {
			storage: redis, options: Options{DefaultRedis: operatorRedis},
			want: [][]string{{"THV_SESSION_REDIS_PASSWORD<s/k"}, generation, tail, kubernetes},
		},
		"redis of the operator": {
			options: Options{DefaultRedis: operatorRedis},
			want:    [][]string{{"THV_SESSION_REDIS_PASSWORD<ds/dk"}, generation, tail, kubernetes},
		},
		"redis of the operator without password": {
			options: Options{DefaultRedis: &Redis{Address: "d:1"}},
			want:    [][]string{generation, tail, kubernetes},
		},
		"memory is memory": {
			storage: &v1beta1.SessionStorageConfig{Provider: "memory"},
			options: Options{DefaultRedis: operatorRedis},
			want:    [][]string{generation, tail, kubernetes},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(func(s *v1beta1.MCPServer) {
				s.Spec.SessionStorage = c.storage
				s.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{Env: c.env}}
			})
			result := mustRender(t, Input{Server: server}, c.options)
			var want []string
			for _, part := range c.want {
				want = append(want, part...)
			}
			if diff := cmp.Diff(want, envOf(deploymentOf(t, result).Spec.Template.Spec.Containers[0].Env)); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			checkDuplicates(t, result, c.notice)
		})
	}
}

// The operator's MCP_* beat spec.env, spec.env beats secrets, secrets beat the pod template, and each name is there
// once.
func TestEachVariableOfTheBackendIsThereOnce(t *testing.T) {
	http := []string{"FASTMCP_PORT=9000", "MCP_HOST", "MCP_PORT=9000", "MCP_TRANSPORT=streamable-http"}
	for name, c := range map[string]struct {
		transport v1beta1.Transport
		template  string
		secrets   []v1beta1.SecretRef
		env       []v1beta1.EnvVar
		want      []string
		notice    string
	}{
		"http":  {want: http},
		"stdio": {transport: "stdio", want: []string{"MCP_TRANSPORT=stdio"}},
		"order": {
			template: "{spec: {containers: [{name: mcp, env: [{name: T2, value: x}, {name: T1, value: x}]}]}}",
			secrets:  []v1beta1.SecretRef{{Name: "b", Key: "S2"}, {Name: "a", Key: "k", TargetEnvName: "S1"}},
			env:      []v1beta1.EnvVar{{Name: "Z", Value: "z"}, {Name: "A"}},
			want:     []string{"T2=x", "T1=x", "S2<b/S2", "S1<a/k", "A", http[0], http[1], http[2], http[3], "Z=z"},
		},
		"precedence": {
			template: "{spec: {containers: [{name: mcp, env: [{name: A, value: t}, {name: B, value: t}, {name: MCP_PORT, value: '9000'}]}]}}",
			secrets:  []v1beta1.SecretRef{{Name: "s", Key: "k", TargetEnvName: "A"}, {Name: "s2", Key: "k", TargetEnvName: "B"}},
			env:      []v1beta1.EnvVar{{Name: "A", Value: "e"}, {Name: "MCP_HOST", Value: "0.0.0.0"}},
			want:     []string{"B<s2/k", "A=e", http[0], http[1], http[2], http[3]},
			notice: `Some names are given several different values: ` +
				`variable "A" of the backend (taken from spec.env, not from spec.podTemplateSpec or spec.secrets); ` +
				`variable "B" of the backend (taken from spec.secrets, not from spec.podTemplateSpec); ` +
				`variable "MCP_HOST" of the backend (taken from the operator, not from spec.env).`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := renderServer(t, func(s *v1beta1.MCPServer) {
				if c.transport != "" {
					s.Spec.Transport = c.transport
				}
				s.Spec.Secrets, s.Spec.Env = c.secrets, c.env
				if c.template != "" {
					withPodTemplate(c.template)(s)
				}
			})
			if diff := cmp.Diff(c.want, envOf(mcpContainer(t, result).Env)); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			checkDuplicates(t, result, c.notice)
		})
	}
}

func checkDuplicates(t *testing.T, result *Result, message string) {
	t.Helper()
	var want []Problem
	if message != "" {
		want = []Problem{{v1beta1.ConditionSpecValid, v1beta1.ReasonDuplicatesMerged, message}}
	}
	if diff := cmp.Diff(want, result.Notices); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
}
