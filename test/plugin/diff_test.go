// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestDiff edits an MCPServer while no operator runs. What the plugin says would be written is then written.
func TestDiff(t *testing.T) {
	s := newScene(t, append(withReplicas(), harness.InlineAuthorization)...)
	s.others(t)
	none := must(t, s.Namespace, cmd.ExitDone, "diff", "mcpserver/web", known)
	if none.out != "No differences.\n" || none.errOut != "" {
		t.Errorf("it says %s%s", none.out, none.errOut)
	}
	s.stop(t)
	s.Edit(t, web, func(server *v1beta1.MCPServer) {
		server.Spec.Image = "example.com/mcp:2"
		server.Spec.AuthzConfig = nil
		server.Spec.Replicas = nil
		server.Spec.Env = []v1beta1.EnvVar{{Name: "NEW", Value: "1"}}
	})
	if err := s.Core.CoreV1().Services(s.Name).Delete(t.Context(), "mcp-web-proxy", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.kubectl.Run(t, "annotate", "mcpserver", web, `freehold.dev/yield=.spec.template.spec.containers[name="toolhive"].livenessProbe.periodSeconds`)
	mark := s.Mark(t)
	golden(t, s.Namespace, "diff", must(t, s.Namespace, cmd.ExitFound, "diff", "web", known).out)
	s.Mark(t)
	wrote, _, err := s.Audit.Since(mark, audit.Writes(), audit.Namespace(s.Name), func(e *audit.Event) bool { return !e.DryRun })
	if err != nil || len(wrote) > 0 {
		t.Errorf("diff has written: %v %v", wrote, err)
	}
	// The operator may do what is tried; it may not read single objects.
	tried := must(t, s.Namespace, cmd.ExitFound, "diff", "web", known, "--try-as="+harness.OperatorUser)
	golden(t, s.Namespace, "diff", tried.out)
	coloured := do(t, s.Namespace, call{args: []string{"diff", "web", known, "--color=always"}})
	if !strings.Contains(coloured.out, "\x1b[31m-        - example.com/mcp:1\x1b[0m") {
		t.Errorf("it is not coloured:\n%s", coloured.out)
	}

	s.Operate(t)
	s.settled(t)
	if got := must(t, s.Namespace, cmd.ExitDone, "diff", "web", known); got.out != "No differences.\n" {
		t.Errorf("after the operator has written it says %s", got.out)
	}
}

// A field that nobody owns and that has to go is shown as gone, although a dry run of that is refused.
func TestDiffOfRemovedFields(t *testing.T) {
	s := newScene(t)
	s.stop(t)
	s.kubectl.Run(t, "annotate", "mcpserver", web, "freehold.dev/backend-update-strategy=OnDelete")
	got := must(t, s.Namespace, cmd.ExitFound, "diff", "web", known)
	for _, want := range []string{"-    rollingUpdate:\n", "-    type: RollingUpdate\n", "+    type: OnDelete\n"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("it does not show %q:\n%s", want, got.out)
		}
	}
	if !strings.Contains(got.errOut, "statefulset.apps/web loses .spec.updateStrategy.rollingUpdate") {
		t.Errorf("it does not say why the API server is not asked: %s", got.errOut)
	}
	s.Operate(t)
	harness.Eventually(t, "the update strategy is as shown", func(context.Context) error {
		strategy, _, err := unstructured.NestedMap(s.MustObject(t, harness.Backend, web).Object, "spec", "updateStrategy")
		if diff := cmp.Diff(map[string]any{"type": "OnDelete"}, strategy); diff != "" {
			err = errors.Join(err, fmt.Errorf("(-want +got):\n%s", diff))
		}
		return err
	})
	s.settled(t)
	if got := must(t, s.Namespace, cmd.ExitDone, "diff", "web", known); got.out != "No differences.\n" {
		t.Errorf("after the operator has written it says %s", got.out)
	}
}

func TestADiffSaysWhatIsNotWritten(t *testing.T) {
	s := newScene(t)
	s.contestOne(t)
	got := must(t, s.Namespace, cmd.ExitFound, "diff", "web", known)
	if got.out != "" || !strings.Contains(got.errOut, "freehold-proxy does not write deployment.apps/web while "+imagePath+" of it is contested") {
		t.Errorf("contested: %s%s", got.out, got.errOut)
	}
	s.Edit(t, web, harness.PodTemplate(`{"spec":{"containers":[{"name":"mcp","ports":"none"}]}}`))
	if got := must(t, s.Namespace, cmd.ExitFailed, "diff", "web", known); !strings.Contains(got.errOut, "nothing is written for MCPServer web") {
		t.Errorf("invalid: %s", got.errOut)
	}

	waiting := env.Namespace(t)
	waiting.Kubectl(t).Run(t, "create", "serviceaccount", "web-sa")
	waiting.Create(t, harness.Server(web, v1beta1.TransportSSE))
	got = must(t, waiting, cmd.ExitFound, "diff", "web", known)
	for _, want := range []string{
		"deployment.apps/web: it is made once the backend is ready",
		"serviceaccount/web-sa is refused: an object with that name exists, and it is not a child of this MCPServer; rename or delete one of them",
	} {
		if !strings.Contains(got.errOut, want) {
			t.Errorf("it does not say %q: %s", want, got.errOut)
		}
	}
	if !strings.Contains(got.out, "+++ statefulset.apps/web by freehold-backend\n@@ -0,0 +1,") {
		t.Errorf("it does not show what is to be made:\n%s", got.out)
	}
}

func TestAUserWithoutRightsIsToldWhatIsMissing(t *testing.T) {
	s := newScene(t)
	s.stop(t)
	s.Edit(t, web, func(server *v1beta1.MCPServer) { server.Spec.Image = "example.com/mcp:2" })
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "viewer-of-" + s.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "viewer"}},
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: binding.RoleRef.Name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}},
	}
	if _, err := s.Core.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Core.RbacV1().RoleBindings(s.Name).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// What only needs to read works, without what may not be read.
	role.Rules[0].Resources = []string{"mcpservers", "deployments", "statefulsets", "services", "configmaps"}
	if _, err := s.Core.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.await(t, "roles may not be read", func(context.Context) error {
		got := must(t, s.Namespace, cmd.ExitDone, "owners", "mcpserver/web", "--as=viewer")
		if !strings.Contains(got.errOut, "you may not read role.rbac.authorization.k8s.io/web-proxy-runner; it is left out") || !strings.Contains(got.out, "deployment.apps/web") {
			return errors.New(got.errOut)
		}
		return nil
	})
	must(t, s.Namespace, cmd.ExitDone, "owners", "mcpserver/web", "--as=viewer")
	says(t, "conflicts", must(t, s.Namespace, cmd.ExitFailed, "conflicts", "--as=viewer", known).errOut,
		"note: you may not list mcpoidcconfigs, mcpauthzconfigs, mcpexternalauthconfigs, mcptoolconfigs, mcptelemetryconfigs, mcpwebhookconfigs, mcpgroups; these are left out\n",
		"error: not everything could be looked at\n")
	if got := must(t, s.Namespace, cmd.ExitFailed, "diff", "web", "--as=viewer", known); !strings.Contains(got.errOut, "--try-as=system:serviceaccount:freehold-system:freehold") {
		t.Errorf("diff says %s", got.errOut)
	}
	if got := must(t, s.Namespace, cmd.ExitFailed, "release", "web", "service/mcp-web:.spec.sessionAffinity", "--as=viewer", "--yes", known); !strings.Contains(got.errOut, "forbidden") {
		t.Errorf("release says %s", got.errOut)
	}
	if got := must(t, s.Namespace, cmd.ExitFailed, "conflicts", "-A", "--as=viewer", known); !strings.Contains(got.errOut, "forbidden") {
		t.Errorf("conflicts says %s", got.errOut)
	}
}

// TestExplain tells the claims. No cluster is needed.
func TestExplain(t *testing.T) {
	ns := env.Namespace(t)
	for name, args := range map[string][]string{
		"explain": {"explain"}, "explain-server-wide": {"explain", "mcpserver/web", "-o", "wide"},
		"explain-kind": {"explain", "statefulsets.apps", "-o", "yaml"}, "explain-path": {"explain", "deployment:.spec.replicas"},
	} {
		golden(t, ns, name, must(t, ns, cmd.ExitDone, args...).out)
	}
	for path, want := range map[string]string{
		"deployment:.spec.template.spec.containers":                     "freehold-proxy",
		"deployment:.metadata.annotations.freehold.dev/replicas-source": "freehold-proxy-replicas",
		"mcpserver:.metadata.annotations.freehold.dev/take":             "kubectl-freehold",
		"configmap:.data":                   "freehold-runconfig",
		"mcpoidcconfigs:.status.configHash": "freehold-config-status",
	} {
		if got := must(t, ns, cmd.ExitDone, "explain", path, "-o", "json"); !strings.Contains(got.out, `"writer": "`+want+`"`) {
			t.Errorf("%s: %s", path, got.out)
		}
	}
	// What the plugin holds while it hands back is told apart from what it writes otherwise.
	for path, want := range map[string]int{"service:.spec.ports": 1, "mcpserver:.metadata.annotations.freehold.dev/take": 0, "deployment:.spec": 1, "mcpgroup:.status.phase": 1} {
		got := must(t, ns, cmd.ExitDone, "explain", path, "-o", "json").out
		if n := strings.Count(got, `"while": "handback"`); n != want {
			t.Errorf("%s: %d writers for the handback alone, want %d: %s", path, n, want, got)
		}
	}
	// A field that does not exist is a mistake, whatever its name begins with.
	if got := must(t, ns, cmd.ExitFailed, "explain", "deployment:.spec.replicasX"); !strings.Contains(got.errOut, "Deployment has no field .spec.replicasX") {
		t.Errorf("it says %s", got.errOut)
	}
	must(t, ns, cmd.ExitFound, "explain", "deployment:.status")
	must(t, ns, cmd.ExitFailed, "explain", "pods")
	must(t, ns, cmd.ExitFailed, "explain", "mcpoidcconfig/corp:.status")
}
