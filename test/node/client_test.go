// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/test/harness"
)

// step is what the client of images.Client tells about one step.
type step struct {
	Time         time.Time `json:"time"`
	Step         string    `json:"step"`
	Milliseconds int64     `json:"ms"`
	Error        string    `json:"error"`
	Tools        []string  `json:"tools"`
	Text         string    `json:"text"`
}

// routed waits until the Service of an MCPServer's proxy leads somewhere. The rules of kube-proxy come a moment after
// the pods are Ready.
func routed(t *testing.T, s *harness.Space, server string) {
	t.Helper()
	service, err := s.Core.CoreV1().Services(s.Name).Get(t.Context(), "mcp-"+server+"-proxy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(service.Spec.Ports[0].Port)))
	harness.Eventually(t, "a connection to "+service.Name, func(ctx context.Context) error {
		connection, err := machine.DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// client runs the MCP client in a pod with the arguments, and returns what it told when it has ended.
func client(t *testing.T, s *harness.Space, args ...string) []step {
	t.Helper()
	pods := s.Core.CoreV1().Pods(s.Name)
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "client-"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "client", Image: images.Client, Args: args}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the end of "+pod.Name, func(ctx context.Context) error {
		if pod, err = pods.Get(ctx, pod.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		if phase := pod.Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			return fmt.Errorf("it is %s: %+v", phase, pod.Status.ContainerStatuses)
		}
		return nil
	})
	output, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	for line := range bytes.Lines(output) {
		// Why it ended is told in a line without JSON.
		if !bytes.HasPrefix(line, []byte("{")) {
			t.Logf("%s: %s", pod.Name, line)
			continue
		}
		var told step
		if err := json.Unmarshal(line, &told); err != nil {
			t.Fatalf("%s says %q: %v", pod.Name, line, err)
		}
		steps = append(steps, told)
	}
	return steps
}
