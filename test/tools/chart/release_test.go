// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	release "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/tools/helm"
)

// operatorName is the name of the operator's objects.
const releaseName, operatorName = "freehold", "freehold"

// configuration is that of helm in the namespace of the release.
func configuration(t *testing.T) *action.Configuration {
	t.Helper()
	return helm.Configuration(t, env.Cluster.Kubeconfig(), operator.Namespace)
}

func install(t *testing.T, given values) *release.Release {
	t.Helper()
	install := action.NewInstall(configuration(t))
	install.ReleaseName, install.Namespace, install.CreateNamespace = releaseName, operator.Namespace, true
	install.WaitStrategy, install.Timeout = kube.StatusWatcherStrategy, harness.Timeout
	out, err := install.Run(load(t), given)
	if err != nil {
		t.Fatal(err)
	}
	return out.(*release.Release)
}

func upgrade(t *testing.T, given values) error {
	t.Helper()
	upgrade := action.NewUpgrade(configuration(t))
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = operator.Namespace, kube.StatusWatcherStrategy, harness.Timeout
	upgrade.ResetThenReuseValues, upgrade.ServerSideApply = true, "auto"
	_, err := upgrade.Run(releaseName, load(t), given)
	return err
}

// TestRelease is the life of a release in a cluster: installed with the CRDs, tested, upgraded, disturbed, rolled back, uninstalled, and
// installed once more beside the CRDs that it left. What runs for an MCPServer goes on through all of it.
func TestRelease(t *testing.T) {
	kube.ManagedFieldsManager = "helm" // By default it is the name of the program.
	ns := env.Namespace(t)
	kubectl := ns.Kubectl(t)
	installed := install(t, values{"crds": values{"install": true}})
	if err := env.Installed(t.Context()); err != nil {
		t.Fatal(err)
	}
	held(t)
	if err := test(t, kubectl, testPod(t, installed)); err == nil {
		t.Error("helm test passes before an operator leads")
	}
	operate := func() *operator.Process {
		return env.Operator(t, "--leader-elect=true", "--leader-elect-resource-namespace="+operator.Namespace)
	}
	running := operate()
	if err := test(t, kubectl, testPod(t, installed)); err != nil {
		t.Errorf("helm test: %v", err)
	}
	ns.Create(t, harness.HTTPServer("web"))
	ns.AwaitStatus(t, "web", harness.Fine...)
	before := ns.Generations(t, "web")

	workers := func() string {
		for _, arg := range deployment(t).Spec.Template.Spec.Containers[0].Args {
			if value, ok := strings.CutPrefix(arg, "--workers="); ok {
				return value
			}
		}
		return ""
	}
	if err := upgrade(t, values{"operator": values{"args": []any{"--workers=3"}}}); err != nil || workers() != "3" {
		t.Errorf("upgraded, it has %q workers: %v", workers(), err)
	}
	// helm says who else has set a field, and does not overwrite it.
	scale := func(to string) {
		kubectl.Run(t, "scale", "deployment/freehold", "--namespace="+operator.Namespace, "--replicas="+to)
	}
	scale("3")
	if err := upgrade(t, values{"operator": values{"replicaCount": 1}}); err == nil || !strings.Contains(err.Error(), `conflict with "kubectl" with subresource "scale"`) {
		t.Errorf("an upgrade against kubectl scale says %v", err)
	}
	scale("2")
	rollback := action.NewRollback(configuration(t))
	rollback.Version, rollback.WaitStrategy, rollback.Timeout, rollback.ServerSideApply = 1, kube.StatusWatcherStrategy, harness.Timeout, "auto"
	if err := rollback.Run(releaseName); err != nil || workers() != "" {
		t.Errorf("rolled back, it has %q workers: %v", workers(), err)
	}
	if diff := cmp.Diff(before, ns.Generations(t, "web")); diff != "" {
		t.Errorf("the workloads of the MCPServer changed (-before +after):\n%s", diff)
	}

	// No kubelet ends the pod whose place it takes.
	if err := running.Stop(); err != nil {
		t.Error(err)
	}
	uninstall := action.NewUninstall(configuration(t))
	uninstall.WaitStrategy, uninstall.Timeout, uninstall.DeletionPropagation = kube.StatusWatcherStrategy, harness.Timeout, "background"
	if _, err := uninstall.Run(releaseName); err != nil {
		t.Fatal(err)
	}
	if _, err := ns.Servers.Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Errorf("the MCPServer is gone with the release: %v", err)
	}
	if _, err := env.Core.AppsV1().Deployments(operator.Namespace).Get(t.Context(), operatorName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the operator is still there: %v", err)
	}
	install(t, values{"crds": values{"install": true}})
	if err := env.Installed(t.Context()); err != nil {
		t.Fatal(err)
	}
	operate()
	ns.Delete(t, "web", metav1.DeletePropagationBackground)
	ns.AwaitGone(t, "web")
}

func deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	d, err := env.Core.AppsV1().Deployments(operator.Namespace).Get(t.Context(), operatorName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// held fails the test unless helm has applied the operator's Deployment on the server, and updated nothing.
func held(t *testing.T) {
	t.Helper()
	for _, entry := range deployment(t).ManagedFields {
		if entry.Manager == "helm" && entry.Operation == metav1.ManagedFieldsOperationApply {
			return
		}
	}
	t.Errorf("helm has not applied it: %v", deployment(t).ManagedFields)
}

// test is helm test. No kubelet runs the pod here: this runs its commands, with the rights of its ServiceAccount, and writes how they
// ended into the pod's status.
func test(t *testing.T, kubectl *harness.Kubectl, want corev1.Pod) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		testing := action.NewReleaseTesting(configuration(t))
		testing.Namespace, testing.Timeout = operator.Namespace, harness.Timeout
		_, shutdown, err := testing.Run(releaseName)
		if shutdown != nil {
			_ = shutdown() // It deletes what has succeeded.
		}
		ended <- err
	}()
	pods := env.Core.CoreV1().Pods(operator.Namespace)
	var pod *corev1.Pod
	harness.Eventually(t, "the pod of helm test is there", func(ctx context.Context) (err error) {
		pod, err = pods.Get(ctx, want.Name, metav1.GetOptions{})
		if err == nil && pod.Status.Phase == corev1.PodFailed {
			err = errors.New("that of the last run is still there")
		}
		return err
	})
	kubeconfig, err := env.Cluster.ServiceAccountKubeconfig(t.Context(), operator.Namespace, pod.Spec.ServiceAccountName)
	if err != nil {
		t.Fatal(err)
	}
	phase := `{"status": {"phase": "Succeeded"}}`
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		args := slices.Clone(container.Args)
		for i, arg := range args {
			if strings.HasPrefix(arg, "--timeout=") {
				args[i] = "--timeout=5s" // A kubelet would wait for as long as it says.
			}
		}
		out, err := kubectl.Try(t.Context(), harness.Call{Args: append([]string{"--kubeconfig=" + kubeconfig}, args...)})
		t.Logf("%s: %s %v", container.Name, out, err)
		if err != nil {
			phase = `{"status": {"phase": "Failed"}}`
			break
		}
	}
	if _, err := pods.Patch(t.Context(), pod.Name, types.MergePatchType, []byte(phase), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	return <-ended
}
