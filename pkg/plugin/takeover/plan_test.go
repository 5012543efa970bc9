// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/plugin/takeover"
	"github.com/freehold-dev/freehold/pkg/render"
)

// TestLostSessionsAreForetold: a takeover that changes the proxyrunner's image may end sessions in Redis.
func TestLostSessionsAreForetold(t *testing.T) {
	redis := &v1beta1.SessionStorageConfig{Provider: v1beta1.SessionStorageRedis, Address: "redis:6379"}
	for name, c := range map[string]struct {
		live, wanted string
		storage      *v1beta1.SessionStorageConfig
		want         bool
	}{
		"to a newer runner":            {live: "runner:v0.44.0", wanted: "runner:v0.62.0", storage: redis, want: true},
		"to the same runner":           {live: "runner:v0.44.0", wanted: "runner:v0.44.0", storage: redis},
		"with sessions in memory":      {live: "runner:v0.44.0", wanted: "runner:v0.62.0"},
		"where there is no proxy yet":  {wanted: "runner:v0.62.0", storage: redis},
		"to a runner of unknown build": {live: "runner:v0.44.0", wanted: "runner:mine", storage: redis},
	} {
		in := desired.Input{
			Server: &v1beta1.MCPServer{
				ObjectMeta: metav1.ObjectMeta{Namespace: "tools", Name: "web", UID: "server", Generation: 2},
				Spec:       v1beta1.MCPServerSpec{Image: "example.com/web:1", Transport: v1beta1.TransportSSE, SessionStorage: c.storage},
			},
			Options: render.Options{RunnerImage: c.wanted},
			Child: func(ref apply.ObjectRef) *unstructured.Unstructured {
				if ref.Kind != managers.Deployment || c.live == "" {
					return nil
				}
				return &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "uid": "deployment"},
					"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
						"containers": []any{map[string]any{"name": render.ProxyContainer, "image": c.live}},
					}}},
				}}
			},
		}
		plan, err := takeover.New(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(plan.Notices, func(p render.Problem) bool { return p.Reason == v1beta1.ReasonSessionsNotKept }); got != c.want {
			t.Errorf("%s: foretold %v, want %v", name, got, c.want)
		}
	}
}
