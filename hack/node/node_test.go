// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/images"
)

// podTimeout is how long a pod may take to be Ready.
const podTimeout = time.Minute

// needNode skips the test where no node can run. With FREEHOLD_NODE=required it fails there.
func needNode(t *testing.T) {
	t.Helper()
	switch err := Check(); {
	case err == nil:
	case os.Getenv("FREEHOLD_NODE") == "required":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
}

// start starts a cluster in the directory and its node, or skips the test where no node can run.
func start(t *testing.T, dir string) (*cluster.Cluster, *Node) {
	t.Helper()
	needNode(t)
	c, err := cluster.Start(t.Context(), cluster.Options{Dir: dir, RealNodes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	n, err := Start(t.Context(), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("the node was ready after %v", time.Since(began).Round(10*time.Millisecond))
	return c, n
}

func TestNodeRunsPods(t *testing.T) {
	c, n := start(t, "")
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	_, err = pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "resting"},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers:                    []corev1.Container{{Name: "rest", Image: images.Pause}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), podTimeout)
	defer cancel()
	err = n.poll(ctx, "the pod to be Ready", func(ctx context.Context) error {
		pod, err := pods.Get(ctx, "resting", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("it is %s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
	})
	if err != nil {
		t.Fatal(err)
	}
	// This goes from the API server to the kubelet.
	if _, err := pods.GetLogs("resting", &corev1.PodLogOptions{}).DoRaw(t.Context()); err != nil {
		t.Errorf("the API server does not reach the kubelet: %v", err)
	}
	// And this through kube-proxy, from the node back to the API server.
	err = n.poll(ctx, "the Service of the API server to be reached", func(ctx context.Context) error {
		connection, err := n.DialContext(ctx, "tcp", "10.96.0.1:443")
		if err != nil {
			return err
		}
		return connection.Close()
	})
	if err != nil {
		t.Error(err)
	}
	hears(t, n)
	nothingLeft(t, n)
}

// hears listens in the network of the node, and checks that what connects there is heard here.
func hears(t *testing.T, n *Node) {
	t.Helper()
	listener, err := n.Listen(t.Context(), net.JoinHostPort(IP, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	said := make(chan string, 1)
	go func() {
		accepted, err := listener.Accept()
		if err != nil {
			said <- err.Error()
			return
		}
		defer accepted.Close()
		heard, err := io.ReadAll(accepted)
		said <- fmt.Sprintf("%s %v", heard, err)
	}()
	connection, err := n.DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(connection, "hello")
	if err := errors.Join(err, connection.Close()); err != nil {
		t.Fatal(err)
	}
	if heard := <-said; heard != "hello <nil>" {
		t.Errorf("heard %q", heard)
	}
}

// nothingLeft stops the node and looks for what is left of it.
func nothingLeft(t *testing.T, n *Node) {
	t.Helper()
	inside := processesOf(t, n)
	if len(inside) < 5 {
		t.Errorf("only processes %v are on the node", inside)
	}
	began := time.Now()
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("the node with %d processes was gone after %v", len(inside), time.Since(began).Round(time.Millisecond))
	for _, pid := range inside {
		if _, err := os.Stat("/proc/" + pid); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("process %s is still there (%v)", pid, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(cgroupRoot, "*", n.cgroup))
	if err != nil || len(left) > 0 {
		t.Errorf("control groups %v are still there (%v)", left, err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), n.layout.dir) {
		t.Errorf("something is still mounted:\n%s", mounts)
	}
}

// processesOf returns the processes in the PID namespace of the node.
func processesOf(t *testing.T, n *Node) (pids []string) {
	t.Helper()
	want, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", n.PID()))
	if err != nil {
		t.Fatal(err)
	}
	links, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		// One that has ended in between is not of interest.
		if namespace, err := os.Readlink(link); err == nil && namespace == want {
			pids = append(pids, filepath.Base(filepath.Dir(filepath.Dir(link))))
		}
	}
	return pids
}
