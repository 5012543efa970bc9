// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"errors"
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
	basetakeover "github.com/freehold-dev/freehold/pkg/takeover"
	"github.com/freehold-dev/freehold/pkg/workload"
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
						"containers": []any{map[string]any{"name": workload.ProxyContainer, "image": c.live}},
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

// TestThePreviewSaysWhatAnOlderProxyrunnerEnforcesLess: a takeover to a proxyrunner that is too old for what the MCPServer asks says so.
func TestThePreviewSaysWhatAnOlderProxyrunnerEnforcesLess(t *testing.T) {
	for image, want := range map[string]bool{"runner:v0.62.0": true, render.DefaultRunnerImage: false} {
		plan, err := takeover.New(desired.Input{
			Server: &v1beta1.MCPServer{
				ObjectMeta: metav1.ObjectMeta{Namespace: "tools", Name: "web", UID: "server", Generation: 2},
				Spec: v1beta1.MCPServerSpec{Image: "example.com/web:1", Transport: v1beta1.TransportSSE, AuthzConfig: &v1beta1.AuthzConfigRef{
					Type: v1beta1.AuthzConfigTypeInline, Inline: &v1beta1.InlineAuthzConfig{Policies: []string{"permit(principal, action, resource);"}},
				}},
			},
			Options: render.Options{RunnerImage: image}, Child: func(apply.ObjectRef) *unstructured.Unstructured { return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(plan.Notices, func(p render.Problem) bool { return p.Reason == v1beta1.ReasonRunnerEnforcesLess }); got != want {
			t.Errorf("%s: announced %v, want %v", image, got, want)
		}
	}
}

// TestUsageMetricsAreForetold: ToolHive's operator may keep its proxies from reporting usage metrics by its own environment.
func TestUsageMetricsAreForetold(t *testing.T) {
	const (
		silent    = `{"middleware_configs":[{"type":"auth"},{"type":"recovery"}]}`
		reporting = `{"middleware_configs":[{"type":"auth"},{"type":"usagemetrics"}]}`
	)
	for name, c := range map[string]struct {
		document string
		options  render.Options
		env      []v1beta1.EnvVar
		want     bool
	}{
		"none before, some afterwards":   {document: silent, want: true},
		"some before":                    {document: reporting},
		"decided by the proxy itself":    {document: `{"name":"web"}`},
		"no document that can be read":   {document: `{`},
		"there is none":                  {},
		"turned off in Freehold as well": {document: silent, options: render.Options{NoUsageMetrics: true}},
		"chosen by the MCPServer":        {document: silent, env: []v1beta1.EnvVar{{Name: render.EnvUsageMetrics, Value: "true"}}},
	} {
		in := desired.Input{
			Server: &v1beta1.MCPServer{
				ObjectMeta: metav1.ObjectMeta{Namespace: "tools", Name: "web", UID: "server", Generation: 2},
				Spec: v1beta1.MCPServerSpec{
					Image: "example.com/web:1", Transport: v1beta1.TransportSSE,
					ResourceOverrides: &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{Env: c.env}},
				},
			},
			Options: c.options,
			Child: func(ref apply.ObjectRef) *unstructured.Unstructured {
				live := childOf(ref)
				switch {
				case ref.Kind == managers.Deployment:
					return live
				case ref.Name == "web-runconfig" && c.document != "":
					live.Object["data"] = map[string]any{"runconfig.json": c.document}
					return live
				}
				return nil
			},
		}
		plan, err := takeover.New(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(plan.Notices, func(p render.Problem) bool { return p.Reason == takeover.NoticeUsageMetricsBegin }); got != c.want {
			t.Errorf("%s: foretold %v, want %v", name, got, c.want)
		}
	}
}

// What has a reference that cannot be used is not taken over, unless that was begun. Then the rest is, and what the proxy uses stays with
// it.
func TestAnUnusableReferenceHoldsATakeoverThatHasNotBegun(t *testing.T) {
	in := desired.Input{
		Server: &v1beta1.MCPServer{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tools", Name: "web", UID: "server", Generation: 2},
			Spec: v1beta1.MCPServerSpec{
				Image: "example.com/web:1", Transport: v1beta1.TransportSSE, ProxyPort: 8080, MCPPort: 9000,
				OIDCConfigRef: &v1beta1.MCPOIDCConfigReference{Name: "corp", Audience: "tools"},
			},
		},
		Child: func(ref apply.ObjectRef) *unstructured.Unstructured {
			live := childOf(ref)
			switch {
			case ref.Kind == managers.Deployment:
				live.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
					"name": workload.ProxyContainer, "ports": []any{map[string]any{"containerPort": int64(7777)}},
				}}}}}
				return live
			case ref.Kind == managers.ServiceKind && ref.Name == "mcp-web-proxy":
				return live
			}
			return nil
		},
	}
	_, err := takeover.New(in)
	if invalid, ok := errors.AsType[*render.InvalidError](err); !ok || invalid.Problems[0].Reason != v1beta1.ReasonOIDCConfigRefNotFound {
		t.Fatalf("before it begins: %v", err)
	}
	in.Server.Annotations = map[string]string{v1beta1.AnnotationTakeoverProgress: string(v1beta1.TakeoverUnderWay)}
	in.Server.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: managers.Takeover, Operation: metav1.ManagedFieldsOperationApply}}
	plan, err := takeover.New(in)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Held) != 1 || plan.Held[0].Reason != v1beta1.ReasonOIDCConfigRefNotFound {
		t.Errorf("held: %+v", plan.Held)
	}
	moments := map[string]basetakeover.Moment{}
	for _, object := range plan.Objects {
		moments[object.Ref.String()] = object.When
	}
	if _, found := moments["deployment.apps/web"]; found {
		t.Error("the proxy is written")
	}
	if got := moments["service/mcp-web-proxy"]; got != takeover.WhenProxyWritten {
		t.Errorf("the proxy's Service is written %s", got)
	}
	if got := moments["statefulset.apps/web"]; got != basetakeover.AfterProxies {
		t.Errorf("the backend, which there is none of yet, is made %s", got)
	}
}

// childOf returns a child with no content.
func childOf(ref apply.ObjectRef) *unstructured.Unstructured {
	child := &unstructured.Unstructured{}
	child.SetGroupVersionKind(ref.Kind.WithVersion("v1"))
	child.SetName(ref.Name)
	child.SetUID("child")
	return child
}
