// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/deploy/policy"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/test/harness"
)

const (
	// legacyRunner is the field manager of a proxyrunner.
	legacyRunner = "toolhive-container-manager"
	// legacy is the name of all that belongs to a proxyrunner that Freehold has not made.
	legacy = "legacy"
)

// runnerAccount is the ServiceAccount of an MCPServer's proxyrunners.
func runnerAccount(server string) string { return server + "-proxy-runner" }

// runnerPod is a pod with ToolHive's proxyrunner, unmodified, that Freehold has not made.
func runnerPod(account, config, generation string, args ...string) corev1.PodSpec {
	const volume = "runconfig"
	// With none at all, the pod is gone before the kubelet has ended its container, which may write once more.
	second := int64(1)
	return corev1.PodSpec{
		ServiceAccountName:            account,
		TerminationGracePeriodSeconds: &second,
		Containers: []corev1.Container{{
			Name: "toolhive", Image: images.ProxyRunner, Args: append([]string{"run"}, args...),
			Env: []corev1.EnvVar{
				{Name: "THV_MCPSERVER_GENERATION", Value: generation},
				{Name: "TOOLHIVE_RUNTIME", Value: "kubernetes"},
				{Name: "OPERATOR_OPENSHIFT", Value: "false"},
				{Name: "HOME", Value: "/tmp"},
				{Name: "XDG_CONFIG_HOME", Value: "/tmp"},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: "/etc/runconfig", ReadOnly: true}},
		}},
		Volumes: []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: config}},
		}}},
	}
}

// attack runs proxyrunners as ToolHive's own operator would have left them behind: under the old ServiceAccount, with a
// configuration of their own that names an old image, and with the gate open, since generation 0 is to apply always. The
// pods are no proxies of the MCPServer: no Service leads to them.
func attack(t *testing.T, ns *harness.Namespace, server, image string, pods int32) {
	t.Helper()
	besieged.Store(ns.Name, struct{}{})
	document, _, err := unstructured.NestedString(ns.MustObject(t, harness.RunConfig, server).Object, "data", "runconfig.json")
	if err != nil {
		t.Fatal(err)
	}
	var settings map[string]any
	if err := json.Unmarshal([]byte(document), &settings); err != nil {
		t.Fatal(err)
	}
	settings["image"] = image
	old, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	meta, labels := metav1.ObjectMeta{Name: legacy}, map[string]string{"app": legacy}
	_, err = ns.Core.CoreV1().ConfigMaps(ns.Name).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"runconfig.json": string(old)}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patch := fmt.Sprintf(`{"metadata":{},"spec":{"containers":[],"serviceAccountName":"%s-sa"}}`, server)
	_, err = ns.Core.AppsV1().Deployments(ns.Name).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: &pods,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       runnerPod(runnerAccount(server), legacy, "0", "--k8s-pod-patch="+patch, image),
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// isLegacy tells whether a pod is one of attack's.
func isLegacy(pod string) bool { return strings.HasPrefix(pod, legacy+"-") }

// request is a request of a proxyrunner.
type request struct {
	*audit.Event
	// pod that sent it.
	pod string
	// answer is why it was refused.
	answer string
}

func (r request) String() string { return fmt.Sprintf("%v by %s: %s", r.Event, r.pod, r.answer) }

// requestsOf returns what the pods of the namespace have asked for since the mark; none but proxyrunners ask for
// anything. Only the log itself tells the pod.
func requestsOf(t *testing.T, ns *harness.Namespace, since audit.Mark) []request {
	t.Helper()
	ns.Mark(t) // What has been answered is in the log now.
	prefix := "system:serviceaccount:" + ns.Name + ":"
	events, _, err := ns.Audit.Since(since, func(e *audit.Event) bool { return strings.HasPrefix(e.User, prefix) })
	if err != nil {
		t.Fatal(err)
	}
	more := map[string]request{}
	file, err := os.Open(ns.Cluster.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			break // The rest, if any, is still being written.
		}
		if !bytes.Contains(line, []byte(prefix)) {
			continue
		}
		var told struct {
			AuditID        string
			User           struct{ Extra map[string][]string }
			ResponseStatus struct{ Message string }
		}
		if err := json.Unmarshal(line, &told); err != nil {
			t.Fatal(err)
		}
		from := strings.Join(told.User.Extra["authentication.kubernetes.io/pod-name"], ",")
		more[told.AuditID] = request{pod: from, answer: told.ResponseStatus.Message}
	}
	requests := make([]request, 0, len(events))
	for _, event := range events {
		r := more[event.ID]
		if r.pod == "" {
			t.Fatalf("the audit log does not tell which pod sent %v", event)
		}
		r.Event = event
		requests = append(requests, r)
	}
	return requests
}

// writesOf returns those requests that were to change something. To attach to a pod changes none.
func writesOf(requests []request) (legacy, ours []request) {
	for _, r := range requests {
		switch {
		case !r.IsWrite() || r.Resource == "pods" && r.Subresource == "attach":
		case isLegacy(r.pod):
			legacy = append(legacy, r)
		default:
			ours = append(ours, r)
		}
	}
	return legacy, ours
}

// upstreamRole are the rights that ToolHive's own operator gives a proxyrunner.
var upstreamRole = []rbacv1.PolicyRule{
	rule("apps", "statefulsets", "get", "list", "watch", "create", "update", "patch", "delete"),
	rule("", "services", "get", "list", "watch", "create", "update", "patch", "delete"),
	rule("", "pods", "get", "list", "watch"),
	rule("", "pods/log", "get"),
	rule("", "pods/attach", "create", "get"),
	rule("", "configmaps", "get", "list", "watch"),
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// grant gives rights to a ServiceAccount of the namespace, on top of those that it has.
func grant(t *testing.T, ns *harness.Namespace, account string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "more-for-" + account}
	client := ns.Core.RbacV1()
	_, err := client.Roles(ns.Name).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.RoleBindings(ns.Name).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// mayWrite tells whether RBAC lets a ServiceAccount patch StatefulSets and Services.
func mayWrite(ctx context.Context, ns *harness.Namespace, account string) (bool, error) {
	for _, resource := range []authorizationv1.ResourceAttributes{
		{Namespace: ns.Name, Verb: "patch", Group: "apps", Resource: "statefulsets"},
		{Namespace: ns.Name, Verb: "patch", Resource: "services"},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + ns.Name + ":" + account, ResourceAttributes: &resource,
		}}
		reviewed, err := ns.Core.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil || !reviewed.Status.Allowed {
			return false, err
		}
	}
	return true, nil
}

// grantUpstreamRole gives the proxyrunners of an MCPServer the rights that they have with ToolHive's own operator, and
// returns when they have them.
func grantUpstreamRole(t *testing.T, ns *harness.Namespace, server string) {
	t.Helper()
	besieged.Store(ns.Name, struct{}{})
	grant(t, ns, runnerAccount(server), upstreamRole...)
	harness.Eventually(t, "the runner's rights", func(ctx context.Context) error {
		if may, err := mayWrite(ctx, ns, runnerAccount(server)); err != nil || !may {
			return errors.Join(err, errors.New("it may not write"))
		}
		return nil
	})
}

// installPolicies installs deploy/policy under names of its own, for the namespace alone, until the test ends. It
// returns what the name of the policy against proxyrunners is, once that refuses what one of them asks for.
func installPolicies(t *testing.T, ns *harness.Namespace, server string) string {
	t.Helper()
	files, err := policy.Manifests.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var manifests [][]byte
	for _, file := range files {
		text, err := policy.Manifests.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, text)
	}
	own := ns.InstallPolicies(t, manifests...)

	// With all rights, but under the name of the runner, so that nothing else can refuse it.
	config := rest.CopyConfig(ns.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + ns.Name + ":" + runnerAccount(server), Groups: []string{"system:masters"},
	}
	runner, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	name := own("freehold-runners")
	harness.Eventually(t, "the policy is asked", func(ctx context.Context) error {
		err := runner.AppsV1().StatefulSets(ns.Name).Delete(ctx, server, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), name) {
			return fmt.Errorf("not refused by %s: %w", name, errors.Join(err, errors.New("dry run")))
		}
		return nil
	})
	return name
}
