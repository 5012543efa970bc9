// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/runconfig"
	"github.com/freehold-dev/freehold/test/harness"
)

// forbidding is a policy that lets nobody in.
const forbidding = `forbid(principal, action, resource);`

func forbids(server *v1beta1.MCPServer) {
	server.Spec.AuthzConfig.Inline.Policies = append(server.Spec.AuthzConfig.Inline.Policies, forbidding)
}

// configMaps are the creation and the change of ConfigMaps.
var configMaps = admissionregistrationv1.RuleWithOperations{
	Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
	Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
}

// denyConfigMaps has the API server refuse every ConfigMap of the namespace whose name has a part in it.
func denyConfigMaps(t *testing.T, ns *harness.Namespace, part string) (lift func()) {
	t.Helper()
	lift = ns.Deny(t, configMaps, admissionregistrationv1.Validation{
		Expression: fmt.Sprintf("!object.metadata.name.contains('%s')", part), Message: "no such ConfigMaps here",
	})
	harness.Eventually(t, "ConfigMaps are denied", func(ctx context.Context) error {
		_, err := ns.Core.CoreV1().ConfigMaps(ns.Name).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "any" + part}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("they are admitted")
		}
		if !strings.Contains(err.Error(), "no such ConfigMaps here") {
			return err
		}
		return nil
	})
	return lift
}

// TestNoProxyAheadOfItsPolicy adds a forbid while the API server refuses its ConfigMap, or that of the RunConfig, and lifts
// the denial later. No proxy pod is made in between, the MCPServer is not Ready at the new generation, and afterwards every
// proxy pod was made after its policy was stored, and names it.
func TestNoProxyAheadOfItsPolicy(t *testing.T) {
	t.Parallel()
	for _, denied := range []string{"-runconfig", "-authz-inline"} {
		t.Run(strings.TrimPrefix(denied, "-"), func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			ns.Expect(t, harness.Forbidden, ns.Name)
			ns.Operate(t)
			ns.Create(t, harness.HTTPServer("guarded", harness.InlineAuthorization))
			ns.AwaitSettled(t, "guarded")
			before := namesOf(proxiesOf(t, ns, "guarded"))
			watched := ns.Record(t, harness.FormOf(harness.ServerItself).Resource)
			lift := denyConfigMaps(t, ns, denied)

			start := ns.Mark(t)
			edited := ns.Edit(t, "guarded", forbids)
			ns.AwaitStatus(t, "guarded", harness.WriteForbidden("no such ConfigMaps here"))
			ns.Quiet(t, start, harness.Calm, audit.Resource("apps", "deployments")) // The proxy is not written.
			if now := namesOf(proxiesOf(t, ns, "guarded")); !slices.Equal(now, before) {
				t.Errorf("proxy pods %v came while the ConfigMap was denied; there were %v", now, before)
			}
			for _, version := range watched.Complete(t) {
				server := harness.ServerOf(t, map[harness.Component]*unstructured.Unstructured{harness.ServerItself: version.Unstructured})
				ready := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionReady)
				if ready != nil && ready.ObservedGeneration >= edited.Generation && ready.Status == metav1.ConditionTrue {
					t.Errorf("Ready is True at generation %d while the policy is not stored", ready.ObservedGeneration)
				}
			}
			lift()
			ns.AwaitSettled(t, "guarded")
			checkProxiesReadTheirPolicy(t, ns, "guarded", forbidding)
		})
	}
}

// proxiesOf returns the proxy's pods that are not on their way out, in the order of their names.
func proxiesOf(t *testing.T, ns *harness.Namespace, name string) []corev1.Pod {
	t.Helper()
	list, err := ns.Core.CoreV1().Pods(ns.Name).List(t.Context(), metav1.ListOptions{LabelSelector: "app=mcpserver,toolhive-name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

func namesOf(pods []corev1.Pod) (names []string) {
	for i := range pods {
		names = append(names, pods[i].Name)
	}
	return names
}

// reads returns the content of the ConfigMaps that a pod reads. They must be older than the pod, and the very ones that its
// template stands for.
func reads(t *testing.T, ns *harness.Namespace, pod *corev1.Pod) string {
	t.Helper()
	var text string
	var uids []string
	for _, volume := range pod.Spec.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		config, err := ns.Core.CoreV1().ConfigMaps(ns.Name).Get(t.Context(), volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			t.Errorf("pod %s reads ConfigMap %s: %v", pod.Name, volume.ConfigMap.Name, err)
			continue
		}
		if config.CreationTimestamp.After(pod.CreationTimestamp.Time) {
			t.Errorf("pod %s is older than ConfigMap %s", pod.Name, config.Name)
		}
		if config.Immutable == nil || !*config.Immutable {
			t.Errorf("ConfigMap %s can be changed", config.Name)
		}
		uids = append(uids, string(config.UID))
		text += fmt.Sprint(config.Data)
	}
	if pinned := pod.Annotations["freehold.dev/config-uids"]; pinned != strings.Join(uids, " ") {
		t.Errorf("pod %s stands for ConfigMaps %s, and reads %v", pod.Name, pinned, uids)
	}
	return text
}

// checkProxiesReadTheirPolicy fails the test unless every proxy pod reads a policy.
func checkProxiesReadTheirPolicy(t *testing.T, ns *harness.Namespace, name, policy string) {
	t.Helper()
	pods := proxiesOf(t, ns, name)
	if len(pods) == 0 {
		t.Error("there is no proxy")
	}
	for i := range pods {
		if text := reads(t, ns, &pods[i]); !strings.Contains(text, policy) {
			t.Errorf("pod %s reads %s", pods[i].Name, text)
		}
	}
}

// TestRollbackReadsItsOwnPolicy goes back to an earlier revision of the proxy, with the policy that this one was made with,
// although the MCPServer asks for another one by now.
func TestRollbackReadsItsOwnPolicy(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	ns.Create(t, harness.HTTPServer("guarded", harness.InlineAuthorization))
	ns.AwaitSettled(t, "guarded")
	ns.Edit(t, "guarded", forbids)
	ns.AwaitSettled(t, "guarded")
	checkProxiesReadTheirPolicy(t, ns, "guarded", forbidding)
	ns.Kubectl(t).Run(t, "rollout", "undo", "deployment/guarded")
	ns.AwaitStatus(t, "guarded", harness.Expectation{Condition: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionFalse, Reason: "FieldManagerConflict", Message: []string{`field manager "kubectl"`}})
	harness.Eventually(t, "the proxies of the first revision are back", func(context.Context) error {
		pods := proxiesOf(t, ns, "guarded")
		for i := range pods {
			if text := reads(t, ns, &pods[i]); strings.Contains(text, forbidding) {
				return fmt.Errorf("pod %s reads %s", pods[i].Name, text)
			}
		}
		return nil
	})
}

// TestConfigMapMadeAnewReplacesProxies puts a ConfigMap of another content in the place of one under a proxy, while the operator is away, and
// then the one of the next policy beforehand. Neither is read by a further pod: the proxies read their policy under another name, the one that
// was in the way is not touched, and until all do the MCPServer has failed.
func TestConfigMapMadeAnewReplacesProxies(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	operator := ns.Operate(t)
	ns.Create(t, harness.HTTPServer("guarded", harness.InlineAuthorization))
	ns.AwaitSettled(t, "guarded")
	before := namesOf(proxiesOf(t, ns, "guarded"))
	ours := ns.MustObject(t, harness.InlineAuthz, "guarded")
	history := ns.Record(t, v1beta1.SchemeGroupVersion.WithResource("mcpservers"))
	harness.Stop(t, operator)
	client := ns.Objects(harness.InlineAuthz)
	if err := client.Delete(t.Context(), ours.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	squat := func(name string) (uid types.UID) {
		t.Helper()
		theirs := ours.DeepCopy()
		theirs.SetName(name)
		theirs.SetUID("")
		theirs.SetResourceVersion("")
		theirs.SetManagedFields(nil)
		theirs.Object["data"] = map[string]any{"authz.json": "{}"}
		made, err := client.Create(t.Context(), theirs, metav1.CreateOptions{FieldManager: harness.Hand})
		if err != nil {
			t.Fatal(err)
		}
		return made.GetUID()
	}
	uid := squat(ours.GetName())
	ns.Operate(t)
	harness.Eventually(t, "all proxies are others", func(context.Context) error {
		for _, pod := range namesOf(proxiesOf(t, ns, "guarded")) {
			if slices.Contains(before, pod) {
				return fmt.Errorf("pod %s may have read another policy, and is still there", pod)
			}
		}
		return nil
	})
	ns.AwaitStatus(t, "guarded", harness.Fine...)
	ns.AwaitSettled(t, "guarded")
	checkProxiesReadTheirPolicy(t, ns, "guarded", "permit")
	if !slices.ContainsFunc(history.Complete(t), func(v harness.Version) bool {
		phase, _, _ := unstructured.NestedString(v.Object, "status", "phase")
		return phase == string(v1beta1.PhaseFailed)
	}) {
		t.Error("it has never failed")
	}

	server, err := ns.Servers.Get(t.Context(), "guarded", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	forbids(server)
	inline := server.Spec.AuthzConfig.Inline
	text, err := runconfig.InlineDocument(inline.Policies, cmp.Or(inline.EntitiesJSON, runconfig.NoEntities))
	if err != nil {
		t.Fatal(err)
	}
	next := inventory.InlineAuthz.ContentName("guarded", map[string]string{runconfig.AuthzKey: text})
	squat(next)
	ns.Edit(t, "guarded", forbids)
	ns.AwaitSettled(t, "guarded")
	checkProxiesReadTheirPolicy(t, ns, "guarded", forbidding)
	if live, err := client.Get(t.Context(), ours.GetName(), metav1.GetOptions{}); err != nil || live.GetUID() != uid {
		t.Errorf("%s is not as its client has made it: %v, %v", ours.GetName(), live, err)
	}
}

// TestUnusedConfigMapsGo lets the ReplicaSets of earlier revisions go, and with them the ConfigMaps that only these name. Each
// is deleted after the last ReplicaSet and pod that named it, and no pod fails for want of one.
func TestUnusedConfigMapsGo(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	ns.Create(t, harness.HTTPServer("guarded", harness.InlineAuthorization))
	ns.AwaitSettled(t, "guarded")
	first := ns.MustNameOf(t, harness.InlineAuthz, "guarded")
	ns.Edit(t, "guarded", forbids)
	ns.AwaitSettled(t, "guarded")
	ns.Quiet(t, ns.Mark(t), harness.Calm)
	if _, err := ns.Objects(harness.InlineAuthz).Get(t.Context(), first, metav1.GetOptions{}); err != nil {
		t.Fatalf("the policy of a revision that the user may go back to: %v", err)
	}

	start := ns.Mark(t)
	ns.Kubectl(t).Run(t, "patch", "deployment/guarded", "--patch", `{"spec":{"revisionHistoryLimit":0}}`)
	harness.Eventually(t, "the policy of the earlier revision is gone", func(ctx context.Context) error {
		_, err := ns.Objects(harness.InlineAuthz).Get(ctx, first, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
	deletions, _, err := ns.Audit.Since(start, audit.Namespace(ns.Name), audit.Succeeded(), audit.Verb("delete"))
	if err != nil {
		t.Fatal(err)
	}
	order := map[string]int{}
	for i, e := range deletions {
		if _, known := order[e.Resource]; !known {
			order[e.Resource] = i
		}
	}
	if set, ok := order["replicasets"]; !ok || set > order["configmaps"] {
		t.Errorf("deletions in the order of %v: %v", order, deletions)
	}
	checkProxiesReadTheirPolicy(t, ns, "guarded", forbidding)
}
