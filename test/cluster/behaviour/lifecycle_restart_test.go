// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

const (
	restartServer = "restarted"
	// kubectlRestart is the annotation of pod templates by which kubectl restarts.
	kubectlRestart = "kubectl.kubernetes.io/restartedAt"
)

// restartScene is an MCPServer with three proxies that has all it needs.
type restartScene struct {
	*harness.Namespace
}

func newRestartScene(t *testing.T) restartScene {
	t.Helper()
	s := restartScene{env.Namespace(t)}
	s.Create(t, harness.Server(restartServer, v1beta1.TransportStreamableHTTP, harness.Replicas(3, 1), harness.SharedSessions))
	return s
}

// request writes annotations of the MCPServer, and waits until everything has come to rest. It returns the mark before.
func (s restartScene) request(t *testing.T, annotations map[string]string) audit.Mark {
	t.Helper()
	mark := s.Mark(t)
	s.Edit(t, restartServer, func(server *v1beta1.MCPServer) { server.Annotations = annotations })
	s.settle(t)
	return mark
}

func (s restartScene) settle(t *testing.T) {
	t.Helper()
	s.AwaitCalm(t, restartServer)
	s.AwaitSettled(t, restartServer)
}

// proxies are the pods of the proxy that are not on their way out, by name, and when they were made.
func (s restartScene) proxies(t *testing.T) map[string]time.Time {
	t.Helper()
	pods, err := env.Core.CoreV1().Pods(s.Name).List(t.Context(), metav1.ListOptions{
		LabelSelector: "app=mcpserver,app.kubernetes.io/instance=" + restartServer,
	})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]time.Time{}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && strings.HasPrefix(pod.GenerateName, restartServer+"-") {
			found[pod.Name] = pod.CreationTimestamp.Time
		}
	}
	return found
}

// deleted are the names of the pods that the operator has deleted since the mark, sorted.
func (s restartScene) deleted(t *testing.T, since audit.Mark) []string {
	t.Helper()
	var names []string
	for _, e := range s.Writes(t, since) {
		if e.Resource == "pods" && e.Verb == "delete" && e.Succeeded() {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	return names
}

// checkUsers looks whether the MCPServer's annotations are what the author wrote, and the author's.
func (s restartScene) checkUsers(t *testing.T, want map[string]string) {
	t.Helper()
	object := s.MustObject(t, harness.ServerItself, restartServer)
	if got := object.GetAnnotations(); !maps.Equal(want, got) {
		t.Errorf("the annotations of the MCPServer are %v, not %v", got, want)
	}
	for key := range want {
		owners := ownership.Owners(object, ".metadata.annotations."+key)
		if len(owners) != 1 || owners[0].Manager != harness.Author {
			t.Errorf("the annotation %s is of %v", key, owners)
		}
	}
	s.CheckOwnership(t, restartServer)
}

// at is a time as it is written in a request.
func at(when time.Time) string { return when.UTC().Format(time.RFC3339) }

// TestRestartRolling asks for restarts of the proxy. Each request is one rollout, and the same one never another.
func TestRestartRolling(t *testing.T) {
	t.Parallel()
	s := newRestartScene(t)
	running := s.Operate(t)
	s.settle(t)
	before, old := generationsOf(t, s.Namespace, restartServer), s.proxies(t)

	first := map[string]string{v1beta1.AnnotationRestartedAt: at(time.Now()), harness.ForeignKey: "here"}
	mark := s.request(t, first)
	if n := s.CheckWrites(t, restartServer, mark, harness.Once("proxy")); n > 6 {
		t.Errorf("the status was written %d times", n)
	}
	s.checkRestarted(t, before.after([]harness.Component{harness.Proxy}), old)
	if names := s.deleted(t, mark); len(names) > 0 {
		t.Errorf("pods of a rollout were deleted: %v", names)
	}
	s.checkUsers(t, first)
	once, young := generationsOf(t, s.Namespace, restartServer), s.proxies(t)

	// Neither another annotation, nor a new operator, nor the end of the request, nor the same once more is a restart.
	explicit := maps.Clone(first)
	explicit[v1beta1.AnnotationRestartStrategy] = "rolling"
	mark = s.request(t, explicit)
	s.checkUsers(t, explicit)
	harness.Stop(t, running)
	s.Operate(t)
	s.settle(t)
	for _, annotations := range []map[string]string{{}, first} {
		s.request(t, annotations)
		s.checkUsers(t, annotations)
	}
	if diff := cmp.Diff(harness.WriteCount{}, harness.CountWrites(restartServer, s.Writes(t, mark)).Without("status")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	s.checkNotRestarted(t, once, young)

	// A later request is another one.
	s.request(t, map[string]string{v1beta1.AnnotationRestartedAt: at(time.Now().Add(time.Second))})
	s.checkRestarted(t, once.after([]harness.Component{harness.Proxy}), young)
}

func (s restartScene) checkRestarted(t *testing.T, want generations, old map[string]time.Time) {
	t.Helper()
	harness.Eventually(t, "the restart", func(context.Context) error {
		if got := generationsOf(t, s.Namespace, restartServer); !cmp.Equal(want, got) {
			return fmt.Errorf("generations of pods are %v, want %v", got, want)
		}
		return nil
	})
	s.settle(t)
	if diff := cmp.Diff(want, generationsOf(t, s.Namespace, restartServer)); diff != "" {
		t.Errorf("generations of pods (-want +got):\n%s", diff)
	}
	now := s.proxies(t)
	if len(now) != len(old) || len(now) != 3 {
		t.Errorf("there were %v, and are %v", old, now)
	}
	for name := range now {
		if _, found := old[name]; found {
			t.Errorf("pod %s was not replaced", name)
		}
	}
}

func (s restartScene) checkNotRestarted(t *testing.T, want generations, pods map[string]time.Time) {
	t.Helper()
	if diff := cmp.Diff(want, generationsOf(t, s.Namespace, restartServer)); diff != "" {
		t.Errorf("generations of pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(pods, s.proxies(t)); diff != "" {
		t.Errorf("the proxies are others (-before +after):\n%s", diff)
	}
}

// TestRestartImmediate asks for restarts that do not wait for new pods. The old ones are deleted, those are left alone
// that are younger than the request, and a new operator deletes none.
func TestRestartImmediate(t *testing.T) {
	t.Parallel()
	s := newRestartScene(t)
	running := s.Operate(t)
	s.settle(t)
	before, old := generationsOf(t, s.Namespace, restartServer), s.proxies(t)

	// The pods are some seconds old: the suite has waited for calm.
	immediate := map[string]string{v1beta1.AnnotationRestartedAt: at(time.Now()), v1beta1.AnnotationRestartStrategy: "immediate"}
	mark := s.request(t, immediate)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(old)), s.deleted(t, mark)); diff != "" {
		t.Errorf("deleted pods (-all that there were +got):\n%s", diff)
	}
	if n := s.CheckWrites(t, restartServer, mark, harness.Once("proxy")); n > 8 {
		t.Errorf("the status was written %d times", n)
	}
	s.checkRestarted(t, before.after([]harness.Component{harness.Proxy}), old)
	s.checkUsers(t, immediate)
	once, young := generationsOf(t, s.Namespace, restartServer), s.proxies(t)

	mark = s.Mark(t)
	harness.Stop(t, running)
	s.Operate(t)
	s.settle(t)
	s.request(t, map[string]string{})
	s.request(t, immediate)
	s.checkNotRestarted(t, once, young)
	// A request from before the pods is carried out by a rollout: they are younger.
	late := map[string]string{
		v1beta1.AnnotationRestartedAt:     at(time.Now().Add(-time.Hour)),
		v1beta1.AnnotationRestartStrategy: "immediate",
	}
	s.request(t, late)
	s.checkRestarted(t, once.after([]harness.Component{harness.Proxy}), young)
	if names := s.deleted(t, mark); len(names) > 0 {
		t.Errorf("pods that are younger than the request were deleted: %v", names)
	}
	s.checkUsers(t, late)
}

// TestKubectlRolloutRestart restarts both workloads with kubectl. That is nobody's business but theirs: it costs no write
// of the operator's but for the status, and stays through later edits of the MCPServer.
func TestKubectlRolloutRestart(t *testing.T) {
	t.Parallel()
	s := newRestartScene(t)
	s.Operate(t)
	kubectl, err := env.Cluster.KubectlPath(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.settle(t)
	before, old := generationsOf(t, s.Namespace, restartServer), s.proxies(t)
	mark := s.Mark(t)
	for _, object := range []string{"deployment/" + restartServer, "statefulset/" + restartServer} {
		restart := exec.CommandContext(t.Context(), kubectl, "--kubeconfig="+env.Cluster.Kubeconfig(), "-n", s.Name, "rollout", "restart", object)
		if output, err := restart.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	s.settle(t)
	s.CheckWrites(t, restartServer, mark, harness.WriteCount{})
	s.checkRestarted(t, before.after(both), old)
	marks := s.kubectlMarks(t)

	s.Edit(t, restartServer, func(server *v1beta1.MCPServer) {
		server.Spec.Image = harness.OtherImage
		server.Annotations = map[string]string{v1beta1.AnnotationRestartedAt: at(time.Now())}
	})
	s.settle(t)
	s.AwaitNoConflict(t, restartServer)
	if diff := cmp.Diff(marks, s.kubectlMarks(t)); diff != "" {
		t.Errorf("what kubectl wrote has changed (-before +after):\n%s", diff)
	}
	harness.Eventually(t, "the image is changed", func(ctx context.Context) error {
		backend, err := env.Core.AppsV1().StatefulSets(s.Name).Get(ctx, restartServer, metav1.GetOptions{})
		if err == nil && backend.Spec.Template.Spec.Containers[0].Image != harness.OtherImage {
			err = fmt.Errorf("it is %s", backend.Spec.Template.Spec.Containers[0].Image)
		}
		return err
	})
}

// kubectlMarks are what kubectl wrote to the pod templates, and who owns it.
func (s restartScene) kubectlMarks(t *testing.T) map[harness.Component]string {
	t.Helper()
	marks := map[harness.Component]string{}
	for _, component := range both {
		object := s.MustObject(t, component, restartServer)
		when, found, err := unstructured.NestedString(object.Object, "spec", "template", "metadata", "annotations", kubectlRestart)
		owners := ownership.Owners(object, ".spec.template.metadata.annotations."+kubectlRestart)
		if err != nil || !found || len(owners) != 1 || owners[0].Manager != "kubectl-rollout" {
			t.Fatalf("the %s has the mark %q, which is of %v: %v", component, when, owners, err)
		}
		marks[component] = when
	}
	return marks
}
