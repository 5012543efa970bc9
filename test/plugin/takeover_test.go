// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/deploy/crd"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/test/harness"
)

// runner is the argument that makes the operator run the proxies that ToolHive's operator ran when it was recorded.
const runner = "--operator-arg=--runner-image=freehold.invalid/proxyrunner:v0.44.0"

// TestTakeoverPreview previews the takeover of what ToolHive has left, and writes nothing.
func TestTakeoverPreview(t *testing.T) {
	ns := env.Namespace(t)
	for _, name := range []string{"edited", "plain", "edited-stdio", "numbers", "scaled", "guarded", "sidecar", "policies"} {
		ns.RestoreFixture(t, name, name)
	}
	mark := ns.Mark(t)
	got := must(t, ns, cmd.ExitFound, "takeover", "--preview", known, runner)
	golden(t, ns, "takeover", got.out)
	if got.errOut != "" {
		t.Errorf("it says %s", got.errOut)
	}
	for _, form := range []string{"wide", "yaml"} {
		golden(t, ns, "takeover-"+form, must(t, ns, cmd.ExitDone, "takeover", "--preview", "mcpserver/edited", "-o", form, known, runner).out)
	}
	ns.Mark(t)
	wrote, _, err := ns.Audit.Since(mark, audit.Writes(), audit.Namespace(ns.Name), func(e *audit.Event) bool { return !e.DryRun })
	if err != nil || len(wrote) > 0 {
		t.Errorf("the preview has written: %v %v", wrote, err)
	}
	// Without the operator's Deployment it says what it assumes; and the takeover itself is not the plugin's to do.
	assumed := must(t, ns, cmd.ExitDone, "takeover", "--preview", "mcpserver/edited")
	if !strings.Contains(assumed.errOut, "what deploy/install.yaml sets is assumed, such as the proxyrunner "+render.DefaultRunnerImage+" (see") {
		t.Errorf("it says %s", assumed.errOut)
	}
	must(t, ns, cmd.ExitFailed, "takeover", "mcpserver/edited")
}

// TestTakeoverHindered previews takeovers with something in the way.
func TestTakeoverHindered(t *testing.T) {
	ns := env.Namespace(t)
	kubectl := ns.Kubectl(t)
	ns.RestoreFixture(t, "edited", "contested")
	kubectl.Run(t, "patch", "deployment/contested", "--field-manager=kubectl-edit", "-p", `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":99}}}}`)
	kubectl.Run(t, "set", "image", "statefulset/contested", "mcp=example.com/mine:1")

	ns.RestoreFixture(t, "plain", "refused")
	remake(t, ns, "refused")

	golden(t, ns, "takeover-hindered", must(t, ns, cmd.ExitFound, "takeover", "--preview", known, runner).out)
	before := must(t, ns, cmd.ExitFound, "takeover", "--preview", "mcpserver/contested", "-o", "json", known, runner).out
	var told printers.Takeovers
	if err := json.Unmarshal([]byte(before), &told); err != nil {
		t.Fatal(err)
	}
	// Of the commands that it tells, one asks for it to be taken, and the other to be left.
	kubectl.Shell(t, told.Servers[0].Take)
	taken := must(t, ns, cmd.ExitDone, "takeover", "--preview", "mcpserver/contested", known, runner).out
	if !strings.Contains(taken, "is taken, as the MCPServer asks") {
		t.Errorf("once it is to be taken it says %s", taken)
	}
	kubectl.Run(t, "annotate", "mcpserver/contested", "freehold.dev/take-")
	kubectl.Shell(t, told.Servers[0].Yield)
	left := must(t, ns, cmd.ExitDone, "takeover", "--preview", "mcpserver/contested", known, runner).out
	if !strings.Contains(left, "backend (statefulset.apps/contested): no pod restarts") {
		t.Errorf("once it is to be left it says %s", left)
	}
}

// remake makes a StatefulSet anew with a name of its Service that cannot be changed.
func remake(t *testing.T, ns *harness.Namespace, name string) {
	t.Helper()
	client := ns.Objects(harness.Backend)
	object := ns.MustObject(t, harness.Backend, name)
	entries := object.GetManagedFields()
	if err := client.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan)}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, name+" is gone", func(ctx context.Context) error {
		if _, err := client.Get(ctx, name, metav1.GetOptions{}); err == nil {
			// There is no garbage collector here, which would see to that.
			_, err = client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
	object.SetResourceVersion("")
	object.SetUID("")
	object.SetManagedFields(nil)
	object.SetFinalizers(nil)
	object.SetDeletionTimestamp(nil)
	object.Object["spec"].(map[string]any)["serviceName"] = "elsewhere"
	made, err := client.Create(t.Context(), object, metav1.CreateOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
	ns.Own(t, harness.Backend, made, entries)
}

// TestOperatorsInTheWay runs both operators as far as the API server can tell.
func TestOperatorsInTheWay(t *testing.T) {
	ns := env.Namespace(t)
	ns.RestoreFixture(t, "edited", "web")
	deploy := func(name, image string, environment ...corev1.EnvVar) *appsv1.Deployment {
		t.Helper()
		labels := map[string]string{"app": name}
		d, err := ns.Core.AppsV1().Deployments(ns.Name).Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: image, Env: environment}}},
				},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	remove := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if err := ns.Core.AppsV1().Deployments(ns.Name).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	deploy("theirs", "ghcr.io/stacklok/toolhive/operator:v0.44.0", corev1.EnvVar{Name: "WATCH_NAMESPACE", Value: "a," + ns.Name})
	deploy("elsewhere", "ghcr.io/stacklok/toolhive/operator:v0.44.0", corev1.EnvVar{Name: "WATCH_NAMESPACE", Value: "elsewhere"})
	golden(t, ns, "takeover-operator", firstLines(must(t, ns, cmd.ExitFound, "takeover", "--preview", "web", known, runner).out, 5))
	remove("theirs")
	must(t, ns, cmd.ExitDone, "takeover", "--preview", "web", known, runner)

	deploy("ours", "example.com/freehold/freehold:v1", corev1.EnvVar{Name: "WATCH_NAMESPACE", Value: ns.Name})
	if out := must(t, ns, cmd.ExitFound, "handback", "web", "--yes").out; !strings.Contains(out, "Freehold's operator runs: deployment.apps/ours in namespace "+ns.Name) ||
		!strings.Contains(out, "kubectl scale -n "+ns.Name+" deployment/ours --replicas=0") {
		t.Errorf("it says %s", out)
	}
	remove("ours", "elsewhere")
}

// firstLines are the first lines of a text.
func firstLines(text string, n int) string {
	lines := slices.Collect(strings.Lines(text))
	return strings.Join(lines[:min(n, len(lines))], "")
}

// TestTakeoverWithoutRights previews as a user who may look and not write.
func TestTakeoverWithoutRights(t *testing.T) {
	ns := env.Namespace(t)
	ns.RestoreFixture(t, "edited", "web")
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "reader"}},
	}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}},
	}
	if _, err := ns.Core.RbacV1().Roles(ns.Name).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := ns.Core.RbacV1().RoleBindings(ns.Name).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var got result
	harness.Eventually(t, "the rights hold", func(context.Context) error {
		if got = do(t, ns, call{args: []string{"takeover", "--preview", "web", "--as=reader", known, runner}}); got.code != cmd.ExitFailed || !strings.Contains(got.out, "may look for it neither") {
			return errors.New(got.out + got.errOut)
		}
		return nil
	})
	for _, want := range []string{"you may not update deployment.apps/web", "not everything could be looked at"} {
		if !strings.Contains(got.errOut, want) {
			t.Errorf("it does not say %q: %s", want, got.errOut)
		}
	}
	if refused := must(t, ns, cmd.ExitDone, "handback", "web", "--as=reader", "--yes"); !strings.Contains(refused.out, "Freehold owns nothing") {
		t.Errorf("it says %s", refused.out)
	}
}

// TestNewerDefinition: nothing of the plugin's, and no command that the documentation gives, replaces a definition of MCPServers that
// has more than Freehold's. Of one with other list keys it says who has to apply their MCPServers again. The definitions are kubectl's,
// so nothing has to be forced; test/documents has those of Helm.
func TestNewerDefinition(t *testing.T) {
	ns := harness.NewForTest(t).Namespace(t)
	kubectl := ns.Kubectl(t)
	kubectl.Run(t, "delete", "-k", filepath.Join("..", "..", "deploy", "crd"))
	apply := func(object string, flags ...string) {
		t.Helper()
		kubectl.Do(t, harness.Call{Args: append([]string{"apply", "--server-side", "-f", "-"}, flags...), Input: object})
	}
	apply(must(t, ns, cmd.ExitDone, "crd").out)
	kubectl.Run(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=1m")
	const newer = "newer"
	define := func(name string, change func(spec map[string]any)) {
		t.Helper()
		apply(changed(t, name+".toolhive.stacklok.dev", change))
	}
	asItIs := func(map[string]any) {}
	add := func(spec map[string]any) { spec[newer] = map[string]any{"type": "string"} }

	define("mcpservers", add)
	const lacks = "has what Freehold's lacks: spec.newer."
	if got := must(t, ns, cmd.ExitDone, "takeover", "--preview"); !strings.Contains(got.errOut, lacks) {
		t.Errorf("the preview says %s", got.errOut)
	}
	if got := must(t, ns, cmd.ExitFound, "crd"); !strings.Contains(got.errOut, lacks) || got.out != "" {
		t.Errorf("it says %s and prints %s", got.errOut, got.out)
	}
	define("mcpservers", asItIs)

	// So it is with the kinds that an MCPServer refers to. One that the cluster lacks does not matter.
	kubectl.Run(t, "delete", "customresourcedefinition/mcpwebhookconfigs.toolhive.stacklok.dev")
	ns.Create(t, harness.Server(web, v1beta1.TransportSSE, func(server *v1beta1.MCPServer) {
		server.Spec.WebhookConfigRef = &v1beta1.WebhookConfigRef{Name: "hooks"}
	}))
	harness.Eventually(t, "the kind is gone", func(context.Context) error {
		const notServed = "WebhookConfigNotFound: spec.webhookConfigRef names the MCPWebhookConfig \"hooks\", and the API server does not serve that kind"
		if got := must(t, ns, cmd.ExitFound, "diff", web, known); !strings.Contains(got.errOut, notServed) {
			return errors.New(got.errOut)
		}
		return nil
	})
	define("mcpoidcconfigs", add)
	const otherLacks = "the CustomResourceDefinition mcpoidcconfigs.toolhive.stacklok.dev in the cluster has what Freehold's lacks: spec.newer." +
		" If Freehold's replaced it, the API server would drop these fields from every MCPOIDCConfig."
	if got := must(t, ns, cmd.ExitFound, "crd"); !strings.Contains(got.errOut, otherLacks) || strings.Contains(got.errOut, "every MCPServer.") {
		t.Errorf("it says %s", got.errOut)
	}
	if got := must(t, ns, cmd.ExitDone, "takeover", "--preview"); !strings.Contains(got.errOut, otherLacks) {
		t.Errorf("the preview says %s", got.errOut)
	}
	define("mcpoidcconfigs", asItIs)

	define("mcpservers", func(spec map[string]any) {
		spec["secrets"].(map[string]any)["x-kubernetes-list-map-keys"] = []any{"name"}
	})
	const orphans = "spec.secrets of the MCPServer %s/keyed is applied by gitops."
	apply(`{"apiVersion":"toolhive.stacklok.dev/v1beta1","kind":"MCPServer","metadata":{"name":"keyed"},
		"spec":{"image":"example.com/keyed","secrets":[{"name":"s","key":"a","targetEnvName":"A"}]}}`, "--field-manager=gitops")
	for _, args := range [][]string{{"takeover", "--preview"}, {"crd"}} {
		if got := must(t, ns, cmd.ExitDone, args...); !strings.Contains(got.errOut, fmt.Sprintf(orphans, ns.Name)) {
			t.Errorf("%v says %s", args, got.errOut)
		}
	}
	// Whoever applies them under another name would be refused.
	const held = "field manager kubectl (Apply) owns .spec.versions of the CustomResourceDefinitions mcpservers.toolhive.stacklok.dev."
	if got := must(t, ns, cmd.ExitFound, "crd", "--field-manager=platform"); !strings.Contains(got.errOut, held) || got.out != "" {
		t.Errorf("for another field manager it says %s and prints %s", got.errOut, got.out)
	}
	printed := must(t, ns, cmd.ExitDone, "crd").out
	apply(printed)
	for _, args := range [][]string{{"crd"}, {"crd", "--field-manager=platform"}} {
		if got := must(t, ns, cmd.ExitDone, args...); got.errOut != "" || got.out != printed {
			t.Errorf("after it is installed %v says %s", args, got.errOut)
		}
	}
	kubectl.Run(t, "get", "mcpwebhookconfigs") // It is installed again.

	define("mcpservers", add)
	var told strings.Builder // As make run does on a cluster that is there.
	if err := operator.Install(t.Context(), ns.Config, &told); err != nil || !strings.Contains(told.String(), "has what Freehold's lacks: spec.newer") {
		t.Errorf("an installation ends with %v and says %s", err, &told)
	}
	if got := must(t, ns, cmd.ExitFound, "crd"); !strings.Contains(got.errOut, lacks) {
		t.Errorf("after an installation it says %s", got.errOut)
	}
}

// changed is one of Freehold's definitions as JSON, with a change of the properties of spec in each version.
func changed(t *testing.T, name string, change func(spec map[string]any)) string {
	t.Helper()
	definitions, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(definitions, func(d crd.Definition) bool { return d.Name == name })
	object, err := definitions[at].Object()
	if err != nil {
		t.Fatal(err)
	}
	versions := object.Object["spec"].(map[string]any)["versions"].([]any)
	for _, version := range versions {
		schema := version.(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		change(schema["properties"].(map[string]any)["spec"].(map[string]any)["properties"].(map[string]any))
	}
	text, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
