// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mcpclient calls MCPServers from pods of a real node, with the client of package images.
package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/hack/node"
	"github.com/freehold-dev/freehold/test/harness"
)

// Step is what the client of images.Client tells about one step.
type Step struct {
	Time         time.Time `json:"time"`
	Step         string    `json:"step"`
	Milliseconds int64     `json:"ms"`
	Redials      int64     `json:"redials"`
	Resent       int64     `json:"resent"`
	Again        string    `json:"again"`
	Error        string    `json:"error"`
	Tools        []string  `json:"tools"`
	Text         string    `json:"text"`
}

// Took is how long the step took.
func (s *Step) Took() time.Duration { return time.Duration(s.Milliseconds) * time.Millisecond }

// Front is the transport that the proxy of an MCPServer speaks to clients.
func Front(server *v1beta1.MCPServer) v1beta1.Transport {
	switch {
	case server.Spec.Transport != v1beta1.TransportStdio && server.Spec.Transport != "":
		return server.Spec.Transport
	case server.Spec.ProxyMode != "":
		return server.Spec.ProxyMode
	default:
		return v1beta1.TransportStreamableHTTP
	}
}

// To are the arguments of a client of the MCPServer that runs in its namespace.
func To(server *v1beta1.MCPServer) []string {
	front, port, path := Front(server), server.Spec.ProxyPort, "mcp"
	if front == v1beta1.TransportSSE {
		path = "sse"
	}
	if port == 0 {
		port = 8080
	}
	return []string{
		"-transport=" + string(front), fmt.Sprintf("-url=http://mcp-%s-proxy:%d/%s", server.Name, port, path),
	}
}

// AwaitRoute waits until the Service of an MCPServer's proxy leads somewhere. The rules of kube-proxy come a moment
// after the pods are Ready.
func AwaitRoute(t *testing.T, ns *harness.Namespace, machine *node.Node, server string) {
	t.Helper()
	service, err := ns.Core.CoreV1().Services(ns.Name).Get(t.Context(), "mcp-"+server+"-proxy", metav1.GetOptions{})
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

// Start starts the MCP client in a pod, with the arguments, and returns the pod's name.
func Start(t *testing.T, ns *harness.Namespace, args ...string) (pod string) {
	t.Helper()
	created, err := ns.Core.CoreV1().Pods(ns.Name).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "client-"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "client", Image: images.Client, Args: args}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.Name
}

// Await waits until a client has ended, and returns what it told.
func Await(t *testing.T, ns *harness.Namespace, pod string) []Step {
	t.Helper()
	pods := ns.Core.CoreV1().Pods(ns.Name)
	harness.Eventually(t, "the end of "+pod, func(ctx context.Context) error {
		live, err := pods.Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if phase := live.Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			return fmt.Errorf("it is %s: %+v", phase, live.Status.ContainerStatuses)
		}
		return nil
	})
	steps, remarks, err := read(t.Context(), ns, pod)
	if err != nil {
		t.Fatal(err)
	}
	for _, remark := range remarks {
		t.Logf("%s: %s", pod, remark)
	}
	return steps
}

// Told returns what a client has told so far.
func Told(ctx context.Context, ns *harness.Namespace, pod string) (steps []Step, err error) {
	steps, _, err = read(ctx, ns, pod)
	return steps, err
}

// read returns the steps that a client has told, and its remarks: why it ended is told in a line without JSON.
func read(ctx context.Context, ns *harness.Namespace, pod string) (steps []Step, remarks []string, err error) {
	output, err := ns.Core.CoreV1().Pods(ns.Name).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return nil, nil, err
	}
	for line := range bytes.Lines(output) {
		if !bytes.HasPrefix(line, []byte("{")) {
			remarks = append(remarks, string(line))
			continue
		}
		if !bytes.HasSuffix(line, []byte("\n")) {
			continue // It is being written.
		}
		var told Step
		if err := json.Unmarshal(line, &told); err != nil {
			return nil, nil, fmt.Errorf("%s says %q: %w", pod, line, err)
		}
		steps = append(steps, told)
	}
	return steps, remarks, nil
}

// Call runs the MCP client in a pod with the arguments, and returns what it told when it has ended.
func Call(t *testing.T, ns *harness.Namespace, args ...string) []Step {
	t.Helper()
	return Await(t, ns, Start(t, ns, args...))
}

// Answers checks that a client in a pod gets a session with the MCPServer, the tools of the test server, and an answer
// to a number of calls. It waits until the MCPServer's Service leads somewhere.
func Answers(t *testing.T, ns *harness.Namespace, machine *node.Node, server *v1beta1.MCPServer, calls int) {
	t.Helper()
	for _, problem := range answers(t, ns, machine, server, calls) {
		t.Error(problem)
	}
}

// AwaitAnswers waits until a client gets what Answers checks. ToolHive's own proxies may restart at any moment.
func AwaitAnswers(t *testing.T, ns *harness.Namespace, machine *node.Node, server *v1beta1.MCPServer, calls int) {
	t.Helper()
	harness.Eventually(t, "answers of "+server.Name, func(context.Context) error {
		return errors.Join(answers(t, ns, machine, server, calls)...)
	})
}

func answers(t *testing.T, ns *harness.Namespace, machine *node.Node, server *v1beta1.MCPServer, calls int) (problems []error) {
	t.Helper()
	AwaitRoute(t, ns, machine, server.Name)
	steps := Call(t, ns, append(To(server), "-text=hello", fmt.Sprintf("-repeat=%d", calls))...)
	want := append([]string{"initialize", "tools/list"}, slices.Repeat([]string{"tools/call"}, calls)...)
	var names []string
	for _, told := range steps {
		names = append(names, told.Step)
		if told.Error != "" {
			problems = append(problems, fmt.Errorf("%s of %s: %s", told.Step, server.Name, told.Error))
		}
		if told.Step == "tools/call" && told.Text != "hello" {
			problems = append(problems, fmt.Errorf("the echo of hello by %s is %q", server.Name, told.Text))
		}
	}
	if !slices.Equal(names, want) {
		problems = append(problems, fmt.Errorf("the client of %s took the steps %v, want %v", server.Name, names, want))
	}
	return problems
}
