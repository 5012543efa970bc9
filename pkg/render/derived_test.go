// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Cases of ToolHive's from which others are derived, for each kind of backend.
const (
	baseSSE   = "crafted/a/inlineauthz"
	baseHTTP  = "examples/operator/mcp-servers/mcpserver_yardstick_streamablehttp/yardstick"
	baseStdio = "examples/operator/mcp-servers/mcpserver_yardstick_stdio/yardstick"
)

// derivation is a case that was not recorded. What ToolHive v0.62.0 makes of it follows from a recorded one and from a few
// lines of its code.
type derivation struct {
	name, base string
	// code is where ToolHive does it.
	code    string
	options Options
	change  func(*v1beta1.MCPServer)
	// replace is a text that stands for another one in all files.
	replace [2]string
	// theirs changes ToolHive's objects, by the names of their files, in which the name of the MCPServer is <n>.
	theirs map[string]func(object map[string]any)
}

var derivations = []derivation{
	{
		name: "a backend port that could be a node port", base: baseSSE,
		code:    "pkg/container/kubernetes/client.go: createServicePorts, createMCPService, createHeadlessService",
		change:  func(s *v1beta1.MCPServer) { s.Spec.MCPPort = 30080 },
		replace: [2]string{"9001", "30080"},
		theirs: map[string]func(map[string]any){
			"ssa-service-mcp-<n>.yaml": func(service map[string]any) {
				at(service, "spec")["type"] = "NodePort"
				first(service, "spec", "ports")["nodePort"] = 30080
			},
			"ssa-service-mcp-<n>-headless.yaml": func(service map[string]any) {
				first(service, "spec", "ports")["nodePort"] = 30080
			},
		},
	},
	{
		name: "a restart that is asked for at creation", base: baseHTTP,
		code: "cmd/thv-operator/controllers/mcpserver_controller.go: performRollingRestart returns when there is no Deployment",
		change: func(s *v1beta1.MCPServer) {
			s.Annotations = map[string]string{v1beta1.AnnotationRestartedAt: "2026-01-02T03:04:05Z"}
		},
	},
	{
		name: "several pods of the backend", base: baseHTTP,
		code:   "cmd/thv-operator/controllers/mcpserver_runconfig.go: populateScalingConfig; pkg/container/kubernetes/client.go: buildStatefulSetSpec",
		change: func(s *v1beta1.MCPServer) { s.Spec.BackendReplicas = new(int32(3)) },
		theirs: map[string]func(map[string]any){"runconfig.json": withBackendReplicas, "ssa-statefulset-<n>.yaml": withThreePods},
	},
	{
		name: "several pods of the backend and a session store", base: baseHTTP,
		code:    "as the one before",
		options: Options{DefaultRedis: &Redis{Address: "redis:6379"}},
		change:  func(s *v1beta1.MCPServer) { s.Spec.BackendReplicas = new(int32(3)) },
		theirs: map[string]func(map[string]any){
			"runconfig.json":           func(document map[string]any) { withDefaultRedis(document); withBackendReplicas(document) },
			"ssa-statefulset-<n>.yaml": withThreePods,
		},
	},
	{
		name: "several pods of a backend with transport stdio", base: baseStdio,
		code:   "as the one before",
		change: func(s *v1beta1.MCPServer) { s.Spec.BackendReplicas = new(int32(3)) },
		theirs: map[string]func(map[string]any){"runconfig.json": withBackendReplicas, "ssa-statefulset-<n>.yaml": withThreePods},
	},
	{
		name: "a variable from a Secret and from env", base: baseHTTP,
		code: "pkg/container/kubernetes/client.go: configureContainer appends to the environment of the patch",
		change: func(s *v1beta1.MCPServer) {
			s.Spec.Env = append(s.Spec.Env, v1beta1.EnvVar{Name: "A", Value: "1"})
			s.Spec.Secrets = []v1beta1.SecretRef{{Name: "s", Key: "k", TargetEnvName: "A"}}
		},
		theirs: map[string]func(map[string]any){
			"runconfig.json": func(document map[string]any) { at(document, "env_vars")["A"] = "1" },
			"ssa-statefulset-<n>.yaml": func(set map[string]any) {
				container := first(set, "spec", "template", "spec", "containers")
				env := []any{
					map[string]any{"name": "A", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "s", "key": "k"}}},
					map[string]any{"name": "A", "value": "1"},
				}
				container["env"] = append(env, container["env"].([]any)...)
			},
		},
	},
}

func withDefaultRedis(document map[string]any) {
	at(document, "scaling_config")["session_redis"] = map[string]any{"address": "redis:6379"}
}

func withBackendReplicas(document map[string]any) {
	at(document, "scaling_config")["backend_replicas"] = 3
}

func withThreePods(set map[string]any) { at(set, "spec")["replicas"] = 3 }

// at returns the map at a path. It is made where there is none.
func at(object map[string]any, path ...string) map[string]any {
	for _, key := range path {
		below, ok := object[key].(map[string]any)
		if !ok {
			below = map[string]any{}
			object[key] = below
		}
		object = below
	}
	return object
}

// first returns the first item of the list at a path.
func first(object map[string]any, path ...string) map[string]any {
	last := len(path) - 1
	return at(object, path[:last]...)[path[last]].([]any)[0].(map[string]any)
}

// deriveCases derives cases from recorded ones.
func deriveCases(tb testing.TB, recorded []upstreamCase) []upstreamCase {
	tb.Helper()
	cases := make([]upstreamCase, 0, len(derivations))
	for _, d := range derivations {
		i := slices.IndexFunc(recorded, func(c upstreamCase) bool { return c.name == d.base })
		if i < 0 {
			tb.Fatalf("%s: there is no case %s", d.name, d.base)
		}
		c := recorded[i]
		c.name, c.recorded, c.options, c.server = "derived/"+d.name, false, d.options, c.server.DeepCopy()
		if d.change != nil {
			d.change(c.server)
		}
		c.files = maps.Clone(c.files)
		for name, data := range c.files {
			if d.replace[0] != "" {
				c.files[name] = bytes.ReplaceAll(data, []byte(d.replace[0]), []byte(d.replace[1]))
			}
		}
		for name, change := range d.theirs {
			name = strings.ReplaceAll(name, "<n>", c.server.Name)
			var object map[string]any
			if err := yaml.Unmarshal(c.files[name], &object); err != nil || object == nil {
				tb.Fatalf("%s: %s has no object: %v", d.name, name, err)
			}
			change(object)
			data, err := json.Marshal(object)
			if err != nil {
				tb.Fatal(err)
			}
			c.files[name] = data
		}
		cases = append(cases, c)
	}
	return cases
}
