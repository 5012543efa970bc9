// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestShards applies two operators, for which processes with their arguments stand in, and labels an MCPServer: it moves to the other
// operator. Each of the two holds the lease that the Role allows it.
func TestShards(t *testing.T) {
	r := newReader(t)
	r.removeOperator(t)
	// The suites have installed it under a field manager of their own, which would keep kubectl from changing it.
	r.kubectl.Run(t, "delete", "role", "freehold-leader-election", "-n", "freehold-system")
	r.Create(t, harness.Server(web, v1beta1.TransportStreamableHTTP))
	var out string
	for _, command := range Of(t) {
		out = r.types(t, command)
		switch {
		case strings.Contains(command.Text, "deploy/samples/shards"):
			env.Expect(t, harness.Moves, r.Name)
			for _, operator := range []string{"freehold", "freehold-a"} {
				r.Operate(t, append(r.argumentsOf(t, operator), "--runner-image=example.com/runner:"+operator)...)
			}
			r.AwaitSettled(t, web)
			r.awaitRunner(t, "example.com/runner:freehold")
		case strings.Contains(command.Text, "kubectl label"):
			r.awaitRunner(t, "example.com/runner:freehold-a")
			r.AwaitSettled(t, web)
		}
	}
	for _, want := range []string{"deployment.apps/freehold ", "deployment.apps/freehold-a ", "lease.coordination.k8s.io/freehold ", "lease.coordination.k8s.io/freehold-a "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in what kubectl shows:\n%s", want, out)
		}
	}
}

// argumentsOf are those of an operator that are about shards and its lease.
func (r *reader) argumentsOf(t *testing.T, operator string) []string {
	t.Helper()
	deployment, err := r.Core.AppsV1().Deployments("freehold-system").Get(t.Context(), operator, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	args := slices.DeleteFunc(deployment.Spec.Template.Spec.Containers[0].Args, func(arg string) bool {
		return !strings.HasPrefix(arg, "--mcpserver-selector=") && !strings.HasPrefix(arg, "--leader-elect") && !strings.HasPrefix(arg, "--configs=")
	})
	return append(args, "--leader-elect-resource-namespace=freehold-system")
}

// awaitRunner waits until the proxy has an image.
func (r *reader) awaitRunner(t *testing.T, image string) {
	t.Helper()
	harness.Eventually(t, "the proxy has the image "+image, func(ctx context.Context) error {
		proxy, err := r.Object(ctx, harness.Proxy, web)
		if err != nil {
			return err
		}
		if have := harness.ValueAt(proxy.Object, `.spec.template.spec.containers[name="toolhive"].image`); have != image {
			return fmt.Errorf("it has %v", have)
		}
		return nil
	})
}
