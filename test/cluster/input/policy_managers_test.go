// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	restclient "k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/test/harness"
)

// fields are what an object of a component must have.
var fields = map[harness.Component]map[string]any{
	harness.ServerItself: {"spec": map[string]any{"image": "example.com/mcp:1"}},
	harness.RunConfig:    {"data": map[string]any{"a": "b"}},
	// An object of which nobody owns anything is not tracked.
	harness.ProxyAccount: {"automountServiceAccountToken": false},
	harness.ProxyRole:    {"rules": []any{}},
	harness.ProxyBinding: {"roleRef": map[string]any{
		"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "some-proxy-runner",
	}},
	harness.ProxyService: {"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80), "protocol": "TCP"}}}},
	harness.Proxy:        {"spec": workload},
	harness.Backend:      {"spec": workload},
}

var workload = map[string]any{
	"replicas": int64(0),
	"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
	"template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "mcp", "image": "example.com/mcp:1"}}},
	},
}

// objectOf is an object of a component.
func objectOf(component harness.Component, name string) *unstructured.Unstructured {
	form := harness.FormOf(component)
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields[component])}
	object.SetGroupVersionKind(form.Resource.GroupVersion().WithKind(form.Kind.Kind))
	object.SetName(name)
	return object
}

// subresources are those of a component that have managers of their own, with a field of each to apply.
var subresources = map[harness.Component]map[string]string{
	harness.ServerItself: {"status": `{"status":{"message":"m"}}`},
	harness.ProxyService: {"status": `{"status":{"loadBalancer":{}}}`},
	harness.Proxy:        {"status": `{"status":{"observedGeneration":1}}`, "scale": `{"spec":{"replicas":0}}`},
	harness.Backend:      {"status": `{"status":{"observedGeneration":1}}`, "scale": `{"spec":{"replicas":0}}`},
}

// writesAs are ways to write an object of a component under the name of a field manager. None of them leaves a trace.
func writesAs(ctx context.Context, s *somebody, component harness.Component, name, manager string) map[string]error {
	client, dryRun := s.objects(component), []string{metav1.DryRunAll}
	results := map[string]error{}
	_, results["apply"] = client.Apply(ctx, name, objectOf(component, name),
		metav1.ApplyOptions{FieldManager: manager, DryRun: dryRun, Force: true})
	_, results["apply of what is not there"] = client.Apply(ctx, "new-"+name, objectOf(component, "new-"+name),
		metav1.ApplyOptions{FieldManager: manager, DryRun: dryRun})
	_, results["create"] = client.Create(ctx, objectOf(component, "other-"+name),
		metav1.CreateOptions{FieldManager: manager, DryRun: dryRun})
	label := `{"metadata":{"labels":{"a":"b"}}}`
	_, results["patch"] = client.Patch(ctx, name, types.MergePatchType, []byte(label),
		metav1.PatchOptions{FieldManager: manager, DryRun: dryRun})
	if live, err := client.Get(ctx, name, metav1.GetOptions{}); err != nil {
		results["get"] = err
	} else {
		live.SetLabels(map[string]string{"a": "b"})
		_, results["update"] = client.Update(ctx, live, metav1.UpdateOptions{FieldManager: manager, DryRun: dryRun})
	}
	for subresource, body := range subresources[component] {
		_, results[subresource] = client.Patch(ctx, name, types.MergePatchType, []byte(body),
			metav1.PatchOptions{FieldManager: manager, DryRun: dryRun}, subresource)
	}
	return results
}

// TestPolicyFieldManagers writes under names that are the operator's, and under names that are not.
func TestPolicyFieldManagers(t *testing.T) {
	t.Parallel()
	ns, unbound := env.Namespace(t), env.Namespace(t)
	const name, ours, theirs = "some", "freehold-proxy", "team-freehold-proxy"
	for _, ns := range []*harness.Namespace{ns, unbound} {
		for component := range fields {
			options := metav1.ApplyOptions{FieldManager: theirs}
			if _, err := as(t, ns, env.Config).objects(component).Apply(t.Context(), name, objectOf(component, name), options); err != nil {
				t.Fatalf("%s: %v", component, err)
			}
		}
	}
	admin := as(t, ns, env.Config)
	bound := installPolicy(t, ns, fieldManagersPolicy)
	harness.Eventually(t, "the policy is asked", func(ctx context.Context) error {
		return refusedBy(bound, writesAs(ctx, admin, harness.RunConfig, name, ours)["create"])
	})

	for component := range fields {
		for way, err := range writesAs(t.Context(), admin, component, name, ours) {
			if err := refusedBy(bound, err); err != nil {
				t.Errorf("%s of %s as %s: %v", way, component, ours, err)
			}
		}
		for way, err := range writesAs(t.Context(), admin, component, name, theirs) {
			if err != nil {
				t.Errorf("%s of %s as %s: %v", way, component, theirs, err)
			}
		}
		for way, err := range writesAs(t.Context(), as(t, unbound, env.Config), component, name, ours) {
			if err != nil {
				t.Errorf("%s of %s as %s in a namespace without the policy: %v", way, component, ours, err)
			}
		}
	}
}

// TestPolicyFieldManagersOfUserAgents writes without a field manager, so that the first part of the User-Agent is one.
func TestPolicyFieldManagersOfUserAgents(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	const name = "some"
	for component := range fields {
		options := metav1.ApplyOptions{FieldManager: "team"}
		if _, err := as(t, ns, env.Config).objects(component).Apply(t.Context(), name, objectOf(component, name), options); err != nil {
			t.Fatalf("%s: %v", component, err)
		}
	}
	calling := func(agent string) *somebody {
		config := restclient.CopyConfig(env.Config)
		config.UserAgent = agent
		return as(t, ns, config)
	}
	write := func(ctx context.Context, s *somebody, component harness.Component, options metav1.PatchOptions) error {
		options.DryRun = []string{metav1.DryRunAll}
		body := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
		_, err := s.objects(component).Patch(ctx, name, types.MergePatchType, body, options)
		return err
	}
	imitator, other := calling("freehold-backend/v1.2.3 (linux)"), calling("team/freehold-backend")
	// Until the policy holds, this is what the fields would belong to.
	live, err := imitator.objects(harness.RunConfig).Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"old":"entry"}}}`), metav1.PatchOptions{})
	if err != nil || live.GetManagedFields()[1].Manager != "freehold-backend" {
		t.Fatalf("the User-Agent should name the manager: %+v, %v", live.GetManagedFields(), err)
	}
	bound := installPolicy(t, ns, fieldManagersPolicy)
	harness.Eventually(t, "the policy is asked", func(ctx context.Context) error {
		return refusedBy(bound, write(ctx, imitator, harness.Proxy, metav1.PatchOptions{}))
	})

	for component := range fields {
		if component != harness.RunConfig {
			if err := refusedBy(bound, write(t.Context(), imitator, component, metav1.PatchOptions{})); err != nil {
				t.Errorf("%s: %v", component, err)
			}
		}
		if err := write(t.Context(), other, component, metav1.PatchOptions{}); err != nil {
			t.Errorf("%s, by another User-Agent, also where an old entry is: %v", component, err)
		}
		if err := write(t.Context(), imitator, component, metav1.PatchOptions{FieldManager: "team"}); err != nil {
			t.Errorf("%s, under a name of its own: %v", component, err)
		}
	}
}
