// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/workload"
)

func TestTheProcessOfAPodIsThatOfItsReadyContainer(t *testing.T) {
	container := func(name string, ready bool, restarts int32) workload.ContainerStatus {
		return workload.ContainerStatus{Name: name, Ready: ready, RestartCount: restarts}
	}
	pod := func(containers ...workload.ContainerStatus) *workload.Pod {
		return &workload.Pod{UID: "u", Statuses: containers}
	}
	leaving := pod(container("mcp", true, 0))
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
	for name, c := range map[string]struct {
		pod  *workload.Pod
		want string
	}{
		"no pod":            {nil, ""},
		"not started":       {pod(), ""},
		"not ready":         {pod(container("mcp", false, 0)), ""},
		"ready":             {pod(container("mcp", true, 0)), "u/0"},
		"started again":     {pod(container("side", true, 7), container("mcp", true, 3)), "u/3"},
		"another container": {pod(container("side", true, 0)), ""},
		"on its way out":    {leaving, ""},
	} {
		if got := ProcessOf(c.pod); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Only what talks to a process by its input and output is rolled out with it.
func TestOnlyStdioIsAttachedToAProcess(t *testing.T) {
	for _, c := range []struct {
		transport     v1beta1.Transport
		process, want string
	}{
		{v1beta1.TransportStdio, "u/0", "u/0"},
		{v1beta1.TransportStdio, "", ""},
		{v1beta1.TransportSSE, "u/0", ""},
		{v1beta1.TransportStreamableHTTP, "u/0", ""},
	} {
		result, err := Render(Input{Server: newServer(withTransport(c.transport)), BackendProcess: c.process}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, written := annotation(deploymentOf(t, result).Spec.Template, v1beta1.AnnotationAttachedTo)
		if got != c.want || written != (c.want != "") {
			t.Errorf("%s with process %q: annotation %q (%t), want %q", c.transport, c.process, got, written, c.want)
		}
	}
}
