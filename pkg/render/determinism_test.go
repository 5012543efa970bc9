// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// TestRenderIsDeterministic: whatever carries no order may come in any, and the bytes are the same. It also
// checks that rendering leaves its input alone.
func TestRenderIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		server := drawServer(t)
		shuffled := server.DeepCopy()
		shuffled.Spec.Env = rapid.Permutation(server.Spec.Env).Draw(t, "order of env")
		if raw := server.Spec.PodTemplateSpec; raw != nil {
			var tree any
			if err := json.Unmarshal(raw.Raw, &tree); err != nil {
				t.Fatal(err)
			}
			shuffled.Spec.PodTemplateSpec = &runtime.RawExtension{Raw: []byte(shuffledJSON(t, tree))}
		}
		before := server.DeepCopy()
		want := outcome(t, server)
		if diff := cmp.Diff(before, server); diff != "" {
			t.Fatalf("the input was modified (-before +after):\n%s", diff)
		}
		for range 3 {
			if diff := cmp.Diff(want, outcome(t, shuffled)); diff != "" {
				t.Fatalf("the same MCPServer in another order (-want +got):\n%s", diff)
			}
		}
	})
}

// TestFullInputIsLeftAlone: the same for an input that sets everything, ConfigMaps included.
func TestFullInputIsLeftAlone(t *testing.T) {
	in := fullInput(t)
	in.AuthzConfigMap = &corev1.ConfigMap{Data: map[string]string{"a": "b"}}
	server, authz := in.Server.DeepCopy(), in.AuthzConfigMap.DeepCopy()
	first := mustRender(t, in, fullOptions)
	want := string(jsonOf(t, first))

	// What was rendered is the caller's: changing it must not reach the input.
	template := statefulSetOf(t, first).Spec.Template
	template.Labels["team"] = "changed"
	for i := range template.Spec.Containers {
		template.Spec.Containers[i].Args = append(template.Spec.Containers[i].Args[:0], "changed")
		clear(template.Spec.Containers[i].Env)
	}
	if diff := cmp.Diff([]any{server, authz}, []any{in.Server, in.AuthzConfigMap}); diff != "" {
		t.Errorf("the input was modified (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(want, string(jsonOf(t, mustRender(t, in, fullOptions)))); diff != "" {
		t.Errorf("a second rendering (-first +second):\n%s", diff)
	}
}

var index = regexp.MustCompile(`spec\.env\[\d+\]`)

// outcome is all that Render returned, as text.
func outcome(t *rapid.T, server *v1beta1.MCPServer) string {
	result, err := Render(Input{Server: server}, Options{ImagePullSecrets: []string{"b", "a"}})
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		// Problems name elements of the shuffled list by their index.
		var texts []string
		for _, p := range invalid.Problems {
			texts = append(texts, index.ReplaceAllString(fmt.Sprint(p), "spec.env[?]"))
		}
		slices.Sort(texts)
		return strings.Join(texts, "\n")
	}
	data, err := json.MarshalIndent(result, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func drawServer(t *rapid.T) *v1beta1.MCPServer {
	text := rapid.SampledFrom([]string{"", "a", "1", "x y"})
	name := rapid.StringMatching(`[A-Z][A-Z0-9_]{0,2}|MCP_PORT|MCP_HOST|HOME`)
	keys := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}|app|toolhive-port`), rapid.StringMatching(`[a-z0-9]{0,3}`), 0, 4)
	server := newServer(withTransport(rapid.SampledFrom([]v1beta1.Transport{"stdio", "sse", "streamable-http"}).Draw(t, "transport")))
	spec := &server.Spec
	for _, n := range rapid.SliceOfNDistinct(name, 0, 5, rapid.ID).Draw(t, "env") {
		spec.Env = append(spec.Env, v1beta1.EnvVar{Name: n, Value: text.Draw(t, "value")})
	}
	for i, n := range rapid.SliceOfN(name, 0, 3).Draw(t, "secrets") {
		spec.Secrets = append(spec.Secrets, v1beta1.SecretRef{Name: fmt.Sprintf("s%d", i), Key: "k", TargetEnvName: n})
	}
	if rapid.Bool().Draw(t, "has overrides") {
		deployment := &v1beta1.ProxyDeploymentOverrides{
			ResourceMetadataOverrides:    v1beta1.ResourceMetadataOverrides{Labels: keys.Draw(t, "labels"), Annotations: keys.Draw(t, "annotations")},
			PodTemplateMetadataOverrides: &v1beta1.ResourceMetadataOverrides{Labels: keys.Draw(t, "pod labels")},
		}
		for _, n := range rapid.SliceOfN(name, 0, 3).Draw(t, "proxy env") {
			deployment.Env = append(deployment.Env, v1beta1.EnvVar{Name: n, Value: text.Draw(t, "proxy value")})
		}
		spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: deployment}
	}
	if rapid.Bool().Draw(t, "has pod template") {
		spec.PodTemplateSpec = &runtime.RawExtension{Raw: []byte(shuffledJSON(t, drawPodTemplate(t, name, text, keys)))}
	}
	return server
}

func drawPodTemplate(t *rapid.T, name, text *rapid.Generator[string], keys *rapid.Generator[map[string]string]) any {
	var env []any
	for _, n := range rapid.SliceOfN(name, 0, 4).Draw(t, "template env") {
		env = append(env, map[string]any{"name": n, "value": text.Draw(t, "template value")})
	}
	labels, selector := map[string]any{}, map[string]any{}
	for k, v := range keys.Draw(t, "template labels") {
		labels[k] = v
	}
	for k, v := range keys.Draw(t, "node selector") {
		selector[k] = v
	}
	quantity := rapid.SampledFrom([]string{"1", "1000m", "0.5", "1Gi", "1024Mi", "0.0001"})
	return map[string]any{
		"metadata": map[string]any{"labels": labels},
		"spec": map[string]any{
			"nodeSelector": selector,
			rapid.SampledFrom([]string{"hostNetwork", "unknownOne", "unknownTwo"}).Draw(t, "field"): true,
			"containers": []any{map[string]any{
				"name": rapid.SampledFrom([]string{"mcp", "side"}).Draw(t, "container"), "image": "i", "env": env,
				"resources": map[string]any{
					"limits":   map[string]any{"cpu": quantity.Draw(t, "limit"), "memory": quantity.Draw(t, "memory")},
					"requests": map[string]any{"cpu": quantity.Draw(t, "request")},
				},
			}},
		},
	}
}

// shuffledJSON writes a tree with the keys of its objects in any order.
func shuffledJSON(t *rapid.T, tree any) string {
	switch tree := tree.(type) {
	case map[string]any:
		keys := rapid.Permutation(slices.Sorted(maps.Keys(tree))).Draw(t, "order of keys")
		parts := make([]string, 0, len(keys))
		for _, key := range keys {
			name, _ := json.Marshal(key)
			parts = append(parts, string(name)+":"+shuffledJSON(t, tree[key]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		parts := make([]string, 0, len(tree))
		for _, item := range tree {
			parts = append(parts, shuffledJSON(t, item))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
