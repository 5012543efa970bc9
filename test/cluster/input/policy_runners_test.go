// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// legacyRunner is the field manager of the proxyrunner.
const legacyRunner = "toolhive-container-manager"

// backendComponents are what the proxyrunner of ToolHive's own operator writes, and the Service that it does not.
var backendComponents = []harness.Component{harness.Backend, harness.BackendService, harness.HeadlessService, harness.ProxyService}

// grant gives ServiceAccounts all rights to StatefulSets and Services of the namespace, as ToolHive's own operator does.
func grant(t *testing.T, ns *harness.Namespace, accounts ...string) {
	t.Helper()
	all := []string{rbacv1.VerbAll}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "generous"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"apps"}, Resources: []string{"statefulsets", "statefulsets/scale", "statefulsets/status"}, Verbs: all},
			{APIGroups: []string{""}, Resources: []string{"services", "services/status"}, Verbs: all},
		},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	}
	for _, account := range accounts {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: account})
	}
	client := env.Core.RbacV1()
	_, err := client.Roles(ns.Name).Create(t.Context(), role, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.RoleBindings(ns.Name).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// asAccount returns a user who has the token of a ServiceAccount.
func asAccount(t *testing.T, ns *harness.Namespace, account string) *somebody {
	t.Helper()
	config, err := env.Cluster.ServiceAccountConfig(t.Context(), ns.Name, account)
	if err != nil {
		t.Fatal(err)
	}
	return as(t, ns, config)
}

// takeOver are ways to write an object that is there.
func takeOver(ctx context.Context, s *somebody, component harness.Component, name string, dryRun ...string) map[string]error {
	client, results := s.objects(component), map[string]error{}
	theirs := objectOf(shapeOf(component), name)
	theirs.Object["spec"] = olderSpec(component)
	_, results["apply"] = client.Apply(ctx, name, theirs,
		metav1.ApplyOptions{FieldManager: legacyRunner, Force: true, DryRun: dryRun})
	_, results["patch"] = client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`),
		metav1.PatchOptions{DryRun: dryRun})
	_, results["disown"] = client.Patch(ctx, name, types.MergePatchType,
		[]byte(`{"metadata":{"ownerReferences":null,"managedFields":[{}]}}`), metav1.PatchOptions{DryRun: dryRun})
	if live, err := client.Get(ctx, name, metav1.GetOptions{}); err != nil {
		results["get"] = err
	} else {
		live.SetAnnotations(nil)
		_, results["update"] = client.Update(ctx, live, metav1.UpdateOptions{DryRun: dryRun})
	}
	_, results["status"] = client.Patch(ctx, name, types.MergePatchType, []byte(`{"status":{"conditions":[]}}`),
		metav1.PatchOptions{DryRun: dryRun}, "status")
	if component == harness.Backend {
		_, results["scale"] = client.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"replicas":0}}`),
			metav1.PatchOptions{DryRun: dryRun}, "scale")
	}
	results["delete"] = client.Delete(ctx, name, metav1.DeleteOptions{DryRun: dryRun})
	results["delete collection"] = client.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dryRun},
		metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	return results
}

// olderSpec is what a proxyrunner of old wants an object to be.
func olderSpec(component harness.Component) map[string]any {
	if component != harness.Backend {
		return map[string]any{"selector": map[string]any{"app": "older"}}
	}
	container := map[string]any{"name": "mcp", "image": "example.com/mcp:older"}
	return map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{container}}}}
}

// shapeOf is the component whose fields an object of a component has here.
func shapeOf(component harness.Component) harness.Component {
	if component == harness.Backend {
		return harness.Backend
	}
	return harness.ProxyService
}

// TestPolicyRunners lets a proxyrunner whose Role is too generous try all that it can do to the backends of MCPServers,
// while they are there, of another MCPServer, and in place of a backend that was deleted.
func TestPolicyRunners(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	const name, other, foreign = "fenced", "neighbour", "database"
	process := ns.Operate(t)
	for _, server := range []string{name, other} {
		ns.Create(t, harness.Server(server, v1beta1.TransportStreamableHTTP))
	}
	ns.AwaitSettled(t, name)
	ns.AwaitSettled(t, other)
	const deployer = "deployer"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: deployer}}
	if _, err := env.Core.CoreV1().ServiceAccounts(ns.Name).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	grant(t, ns, name+"-proxy-runner", deployer)
	runner, user := asAccount(t, ns, name+"-proxy-runner"), asAccount(t, ns, deployer)
	for _, component := range []harness.Component{harness.Backend, harness.BackendService} {
		object := objectOf(shapeOf(component), foreign)
		if _, err := runner.objects(component).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatalf("the rights are not what they should be: %v", err)
		}
	}
	passes := func(what string, results map[string]error) {
		t.Helper()
		for way, err := range results {
			if err != nil {
				t.Errorf("%s: %s: %v", what, way, err)
			}
		}
	}
	for _, component := range backendComponents {
		passes("without the policy", takeOver(t.Context(), runner, component, harness.FormOf(component).Name(name), metav1.DryRunAll))
	}
	bound := installPolicy(t, ns, runnersPolicy)
	harness.Eventually(t, "the policy is asked", func(ctx context.Context) error {
		return refusedBy(bound, runner.objects(harness.Backend).Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
	})

	for _, server := range []string{name, other} {
		for _, component := range backendComponents {
			object := harness.FormOf(component).Name(server)
			for way, err := range takeOver(t.Context(), runner, component, object) {
				if err := refusedBy(bound, err); err != nil {
					t.Errorf("%s of %s %s: %v", way, component, object, err)
				}
			}
			passes("another ServiceAccount on "+object, takeOver(t.Context(), user, component, object, metav1.DryRunAll))
			for _, entry := range ns.MustObject(t, component, server).GetManagedFields() {
				if entry.Manager == legacyRunner {
					t.Errorf("%s %s has fields of %s", component, object, entry.Manager)
				}
			}
		}
	}
	for _, component := range []harness.Component{harness.Backend, harness.BackendService} {
		results := takeOver(t.Context(), runner, component, foreign, metav1.DryRunAll)
		if component == harness.Backend {
			if err := refusedBy(bound, results["scale"]); err != nil {
				t.Errorf("a proxyrunner scales nothing: %v", err)
			}
			delete(results, "scale")
		}
		passes("what is of no MCPServer", results)
	}

	// Nobody makes the objects again now. A proxyrunner of old would.
	harness.Stop(t, process)
	for _, component := range backendComponents {
		object := harness.FormOf(component).Name(name)
		if err := ns.Objects(component).Delete(t.Context(), object, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		_, apply := runner.objects(component).Apply(t.Context(), object, objectOf(shapeOf(component), object),
			metav1.ApplyOptions{FieldManager: legacyRunner, Force: true})
		_, create := runner.objects(component).Create(t.Context(), objectOf(shapeOf(component), object), metav1.CreateOptions{})
		owned := objectOf(shapeOf(component), "made-up")
		owned.SetOwnerReferences([]metav1.OwnerReference{ownerOf(t, ns, other)})
		_, adopted := runner.objects(component).Create(t.Context(), owned, metav1.CreateOptions{})
		for way, err := range map[string]error{"apply": apply, "create": create, "create for another": adopted} {
			if err := refusedBy(bound, err); err != nil {
				t.Errorf("%s of %s, which was deleted: %v", way, object, err)
			}
		}
	}
	// The operator does, under the same policy.
	ns.Operate(t)
	harness.Eventually(t, "the backend is there again", func(ctx context.Context) error {
		var missing []error
		for _, component := range backendComponents {
			_, err := ns.Object(ctx, component, name)
			missing = append(missing, err)
		}
		return errors.Join(missing...)
	})
	ns.AwaitSettled(t, name)
}

func ownerOf(t *testing.T, ns *harness.Namespace, server string) metav1.OwnerReference {
	t.Helper()
	object := ns.MustObject(t, harness.ServerItself, server)
	return metav1.OwnerReference{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Name: object.GetName(), UID: object.GetUID(),
	}
}
