// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
)

const (
	// patience is how long tests wait for what takes a second on an idle machine.
	patience = time.Minute
	alice    = "alice"
	manager  = "alices-tool"
)

// start starts a cluster that ends with the test. The first one on a machine builds its programs, which is told on
// the standard error output.
func start(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real processes, which -short leaves out")
	}
	begin := time.Now()
	c, err := cluster.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("cluster usable after %s", time.Since(begin).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func clientOfUser(t *testing.T, c *cluster.Cluster, name string, groups ...string) kubernetes.Interface {
	t.Helper()
	config, err := c.UserConfig(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return clientFor(t, config)
}

// eventually waits until condition returns true.
func eventually(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, condition)
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

func podTemplate(app string) *corev1ac.PodTemplateSpecApplyConfiguration {
	return corev1ac.PodTemplateSpec().WithLabels(map[string]string{"app": app}).WithSpec(corev1ac.PodSpec().
		WithInitContainers(
			corev1ac.Container().WithName("prepares").WithImage("none"),
			corev1ac.Container().WithName("sidecar").WithImage("none").WithRestartPolicy(corev1.ContainerRestartPolicyAlways),
		).
		WithContainers(corev1ac.Container().WithName("main").WithImage("none")))
}

// suite is the tests that share a cluster.
type suite struct{ c *cluster.Cluster }

func TestCluster(t *testing.T) {
	s := suite{c: start(t, cluster.Options{FakeNodes: 2})}
	t.Run("workloads become Ready and go away", s.workloads)
	t.Run("a pod is Ready when it says", s.readyAfter)
	t.Run("the audit log tells how something was written", s.auditOfWrites)
	t.Run("users and service accounts", s.credentials)
	t.Run("everything listens on loopback", s.listeners)
	t.Run("a frozen and a stopped API server", s.faults)
	t.Run("nothing is left", s.stop)
}

func (s suite) workloads(t *testing.T) {
	c := s.c
	client := clientOfUser(t, c, alice, "system:masters")
	options := metav1.ApplyOptions{FieldManager: manager}
	deployments, statefulSets := client.AppsV1().Deployments("default"), client.AppsV1().StatefulSets("default")
	labels := metav1ac.LabelSelector()
	if _, err := deployments.Apply(t.Context(), appsv1ac.Deployment("web", "default").WithSpec(appsv1ac.DeploymentSpec().
		WithReplicas(3).WithSelector(labels.WithMatchLabels(map[string]string{"app": "web"})).WithTemplate(podTemplate("web")),
	), options); err != nil {
		t.Fatal(err)
	}
	if _, err := statefulSets.Apply(t.Context(), appsv1ac.StatefulSet("db", "default").WithSpec(appsv1ac.StatefulSetSpec().
		WithReplicas(2).WithServiceName("db").WithTemplate(podTemplate("db")).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"app": "db"})),
	), options); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Deployment and the StatefulSet to be ready", func(ctx context.Context) (bool, error) {
		deployment, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		statefulSet, err := statefulSets.Get(ctx, "db", metav1.GetOptions{})
		return deployment.Status.AvailableReplicas == 3 && statefulSet.Status.AvailableReplicas == 2, err
	})
	pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		status := pods.Items[i].Status
		containers := slices.Concat(status.ContainerStatuses, status.InitContainerStatuses)
		if len(containers) != 3 || status.PodIP == "" || status.Phase != corev1.PodRunning {
			t.Errorf("status of pod %s: %+v", pods.Items[i].Name, status)
		}
		for _, container := range containers {
			if !container.Ready {
				t.Errorf("container %s of pod %s is not ready", container.Name, pods.Items[i].Name)
			}
		}
	}
	for _, err := range []error{
		deployments.Delete(t.Context(), "web", metav1.DeleteOptions{}),
		statefulSets.Delete(t.Context(), "db", metav1.DeleteOptions{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the pods to be gone", func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, err
	})
}

func (s suite) readyAfter(t *testing.T) {
	c := s.c
	pods := clientFor(t, c.RESTConfig()).CoreV1().Pods("default")
	for name, after := range map[string]string{"soon": "1ms", "late": "1h"} {
		pod := corev1ac.Pod(name, "default").WithAnnotations(map[string]string{cluster.ReadyAfterAnnotation: after}).
			WithSpec(corev1ac.PodSpec().WithContainers(corev1ac.Container().WithName("main").WithImage("none")))
		if _, err := pods.Apply(t.Context(), pod, metav1.ApplyOptions{FieldManager: manager}); err != nil {
			t.Fatal(err)
		}
	}
	get := func(ctx context.Context, name string) *corev1.Pod {
		t.Helper()
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return pod
	}
	eventually(t, "both pods to be scheduled and one of them to run", func(ctx context.Context) (bool, error) {
		return get(ctx, "soon").Status.Phase == corev1.PodRunning && get(ctx, "late").Spec.NodeName != "", nil
	})
	if phase := get(t.Context(), "late").Status.Phase; phase != corev1.PodPending {
		t.Errorf("the pod that is to be late is %s", phase)
	}
}

func (s suite) auditOfWrites(t *testing.T) {
	c := s.c
	client := clientOfUser(t, c, alice, "system:masters")
	configMaps := client.CoreV1().ConfigMaps("default")
	before, err := c.AuditMark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	desired := corev1ac.ConfigMap("audited", "default").WithData(map[string]string{"a": "1"})
	written, err := configMaps.Apply(t.Context(), desired, metav1.ApplyOptions{FieldManager: manager})
	if err != nil {
		t.Fatal(err)
	}
	desired.WithData(map[string]string{"a": "2"})
	if _, err = configMaps.Apply(t.Context(), desired, metav1.ApplyOptions{FieldManager: "thief", Force: true}); err != nil {
		t.Fatal(err)
	}
	if _, err = configMaps.Patch(t.Context(), "audited", types.MergePatchType, []byte(`{"data":{"b":"1"}}`),
		metav1.PatchOptions{FieldManager: manager}); err != nil {
		t.Fatal(err)
	}
	// What makes the parameter a proof of an apply.
	unforced := false
	if _, err = configMaps.Patch(t.Context(), "audited", types.MergePatchType, []byte(`{"data":{"c":"1"}}`),
		metav1.PatchOptions{FieldManager: manager, Force: &unforced}); !apierrors.IsInvalid(err) {
		t.Errorf("a merge patch with force=false: %v, want 422", err)
	}
	guard := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(written.UID))}
	if err = configMaps.Delete(t.Context(), "audited", guard); err != nil {
		t.Fatal(err)
	}
	after, err := c.AuditMark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	events, _, err := audit.NewReader(c.AuditLog()).Since(before, audit.User(alice))
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		verb, manager string
		code          int
		apply, forced bool
	}{
		{"patch", manager, 201, true, false},
		{"patch", "thief", 200, true, true},
		{"patch", manager, 200, false, false},
		{"patch", manager, 422, true, false},
		{"delete", "", 200, false, false},
	}
	if len(events) != len(want) {
		t.Fatalf("%d events, want %d: %v", len(events), len(want), events)
	}
	for i, event := range events {
		if event.Verb != want[i].verb || event.FieldManager != want[i].manager || event.Code != want[i].code ||
			event.IsApply() != want[i].apply || event.IsForced() != want[i].forced || !event.IsWrite() {
			t.Errorf("event %d is %v, want %+v", i, event, want[i])
		}
		if event.Resource != "configmaps" || event.Namespace != "default" || event.Name != "audited" {
			t.Errorf("event %d is about something else: %v", i, event)
		}
	}
	uid, _, err := events[len(events)-1].Preconditions()
	if err != nil || uid != string(written.UID) {
		t.Errorf("the deletion was guarded by %q, %v, want %q", uid, err, written.UID)
	}
	if later, _, err := audit.NewReader(c.AuditLog()).Since(after, audit.User(alice)); err != nil || len(later) > 0 {
		t.Errorf("events of requests answered before the mark lie behind it: %v, %v", later, err)
	}
}

func (s suite) credentials(t *testing.T) {
	c := s.c
	admin := clientFor(t, c.RESTConfig())
	if _, err := admin.CoreV1().ServiceAccounts("default").Apply(t.Context(),
		corev1ac.ServiceAccount("robot", "default"), metav1.ApplyOptions{FieldManager: manager}); err != nil {
		t.Fatal(err)
	}
	userFile, err := c.UserKubeconfig("bob/the:builder", "builders")
	if err != nil {
		t.Fatal(err)
	}
	accountFile, err := c.ServiceAccountKubeconfig(t.Context(), "default", "robot")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		userFile: "bob/the:builder", accountFile: "system:serviceaccount:default:robot", c.Kubeconfig(): "admin",
	} {
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = clientFor(t, config).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		if want == "admin" {
			if err != nil {
				t.Errorf("the administrator: %v", err)
			}
			continue
		}
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"`+want+`"`) {
			t.Errorf("somebody without rights: %v, want it to be forbidden to %q", err, want)
		}
	}
	if _, err := c.ServiceAccountConfig(t.Context(), "default", "nobody"); !apierrors.IsNotFound(err) {
		t.Errorf("a token of no ServiceAccount: %v, want 404", err)
	}
}

func (s suite) faults(t *testing.T) {
	c := s.c
	config := c.RESTConfig()
	config.Timeout = 300 * time.Millisecond
	namespaces := clientFor(t, config).CoreV1().Namespaces()
	get := func() error {
		_, err := namespaces.Get(t.Context(), "default", metav1.GetOptions{})
		return err
	}
	answers := func(context.Context) (bool, error) { return get() == nil, nil }

	if err := c.Pause(cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	if err := get(); !os.IsTimeout(err) {
		t.Errorf("a request to a frozen API server: %v, want a timeout", err)
	}
	if err := c.Resume(cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API server to answer again", answers)

	if err := c.StopComponent(cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	if err := get(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a request to a stopped API server: %v, want it refused", err)
	}
	if err := c.StartComponent(t.Context(), cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API server to answer again", answers)
	if err := c.StopComponent("no-such-component"); !errors.Is(err, cluster.ErrNotStarted) {
		t.Errorf("stopping what there is not: %v, want %v", err, cluster.ErrNotStarted)
	}
}

func (s suite) stop(t *testing.T) {
	c := s.c
	pids := c.PIDs()
	if len(pids) != 5 {
		t.Fatalf("running are %v, want five components", pids)
	}
	waited := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { waited <- c.Wait(ctx) }()

	begin := time.Now()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	t.Logf("stopped after %s", took.Round(time.Millisecond))
	if took > 5*time.Second {
		t.Errorf("stopping took %s", took)
	}
	for component, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s is still there as process %d: %v", component, pid, err)
		}
	}
	if _, err := os.Stat(c.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", c.Dir(), err)
	}
	cancel()
	if err := <-waited; err != nil {
		t.Errorf("a wanted end was taken for a failure: %v", err)
	}
}
