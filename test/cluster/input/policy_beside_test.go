// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/deploy/policy"
	"github.com/freehold-dev/freehold/hack/toolhive"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestPolicyBesideToolHive lets ToolHive's operator try all that it can do to an MCPServer and to each of its children, while
// they are there and in place of one that was deleted. What is of no MCPServer it may write, and an MCPServer as it is, which
// is how it migrates stored objects to another version. To others nothing is refused.
func TestPolicyBesideToolHive(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	const name = "fenced"
	process := ns.Operate(t)
	ns.Create(t, harness.ServerWithAllChildren(name))
	ns.AwaitSettled(t, name)
	theirs := impersonate(t, ns, "system:serviceaccount:"+toolhive.Namespace+":"+toolhive.ServiceAccount)
	others := impersonate(t, ns, "system:serviceaccount:"+toolhive.Namespace+":someone-else")
	bound := installPolicyOf(t, ns, policy.BesideToolHive)
	dryRun := []string{metav1.DryRunAll}
	harness.Eventually(t, "the policy is asked", func(ctx context.Context) error {
		return refusedBy(bound, theirs.objects(harness.Proxy).Delete(ctx, name, metav1.DeleteOptions{DryRun: dryRun}))
	})

	for _, component := range harness.ComponentsOf(harness.ServerWithAllChildren(name)) {
		object := ns.MustObject(t, component, name)
		client := theirs.objects(component)
		for way, patch := range map[string]string{
			"label": `{"metadata":{"labels":{"a":"b"}}}`, "annotation": `{"metadata":{"annotations":{"a":"b"}}}`,
			"finalizers": `{"metadata":{"finalizers":["example.com/mine"]}}`, "disown": `{"metadata":{"ownerReferences":null,"finalizers":null}}`,
		} {
			_, err := client.Patch(t.Context(), object.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dryRun})
			if err := refusedBy(bound, err); err != nil {
				t.Errorf("%s of the %s: %v", way, component, err)
			}
			if _, err := others.objects(component).Patch(t.Context(), object.GetName(), types.MergePatchType, []byte(patch),
				metav1.PatchOptions{DryRun: dryRun}); err != nil {
				t.Errorf("%s of the %s by another: %v", way, component, err)
			}
		}
		if err := refusedBy(bound, client.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{DryRun: dryRun})); err != nil {
			t.Errorf("deletion of the %s: %v", component, err)
		}
		if component == harness.ServerItself {
			continue
		}
		again := object.DeepCopy()
		again.SetName("again")
		again.SetResourceVersion("")
		again.SetUID("")
		again.SetManagedFields(nil)
		_, err := client.Create(t.Context(), again, metav1.CreateOptions{DryRun: dryRun})
		if err := refusedBy(bound, err); err != nil {
			t.Errorf("creation of a %s: %v", component, err)
		}
		if component == harness.BackendService || component == harness.ProxyService || component == harness.HeadlessService {
			continue // Two have no address in common.
		}
		again.SetOwnerReferences(nil)
		if _, err := client.Create(t.Context(), again, metav1.CreateOptions{DryRun: dryRun}); err != nil {
			t.Errorf("creation of a %s that is of no MCPServer: %v", component, err)
		}
	}

	servers := theirs.objects(harness.ServerItself)
	live := ns.MustObject(t, harness.ServerItself, name)
	if _, err := servers.Update(t.Context(), live, metav1.UpdateOptions{DryRun: dryRun}); err != nil {
		t.Errorf("an MCPServer as it is: %v", err)
	}
	_, err := servers.Update(t.Context(), live, metav1.UpdateOptions{DryRun: dryRun}, "status")
	if err := refusedBy(bound, err); err != nil {
		t.Errorf("its status: %v", err)
	}
	if err := unstructured.SetNestedField(live.Object, "example.com/mcp:older", "spec", "image"); err != nil {
		t.Fatal(err)
	}
	_, err = servers.Update(t.Context(), live, metav1.UpdateOptions{DryRun: dryRun})
	if err := refusedBy(bound, err); err != nil {
		t.Errorf("its spec: %v", err)
	}
	// The operator goes on under the policy.
	harness.Stop(t, process)
	if err := ns.Objects(harness.ProxyService).Delete(t.Context(), harness.FormOf(harness.ProxyService).Name(name), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ns.Operate(t)
	harness.Eventually(t, "the Service is there again", func(ctx context.Context) error {
		_, err := ns.Object(ctx, harness.ProxyService, name)
		return err
	})
	ns.Delete(t, name, metav1.DeletePropagationBackground)
	ns.AwaitGone(t, name)
}
