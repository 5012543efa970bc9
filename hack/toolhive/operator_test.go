// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package toolhive_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/hack/toolhive"
)

// patience is how long a test waits for what takes a second on an idle machine.
const patience = time.Minute

// start starts a cluster that ends with the test. The first one on a machine builds its programs, which is told on
// the standard error output.
func start(t *testing.T) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestOperatorMakesADeployment runs the operator beside definitions that are there already.
func TestOperatorMakesADeployment(t *testing.T) {
	c := start(t)
	core, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := operator.Install(t.Context(), c.RESTConfig(), t.Output()); err != nil {
		t.Fatal(err)
	}
	definitions := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	const name = "mcpservers.toolhive.stacklok.dev"
	before, err := definitions.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	namespaces := core.CoreV1().Namespaces()
	for _, name := range []string{"watched", "other"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := namespaces.Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	p, err := toolhive.Start(t.Context(), c, toolhive.Options{Dir: t.TempDir(), Namespaces: []string{"watched"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	after, err := definitions.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if before.GetGeneration() != after.GetGeneration() {
		t.Errorf("definition %s was changed", name)
	}

	server := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "metadata": map[string]any{"name": "echo"},
		"spec": map[string]any{"image": "example.com/mcp:1", "transport": "streamable-http"},
	}}
	servers := client.Resource(schema.GroupVersionResource{
		Group: "toolhive.stacklok.dev", Version: "v1beta1", Resource: "mcpservers",
	})
	for _, namespace := range []string{"other", "watched"} {
		if _, err := servers.Namespace(namespace).Create(t.Context(), server, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	deployment := deploymentOf(t, core, "watched", "echo")
	managers := map[string]bool{}
	for _, entry := range deployment.ManagedFields {
		managers[entry.Manager+" "+string(entry.Operation)] = true
	}
	if !managers[p.Name()+" Update"] {
		t.Errorf("the Deployment has the managers %v, want %s", managers, p.Name())
	}
	elsewhere, err := core.AppsV1().Deployments("other").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(elsewhere.Items) > 0 {
		t.Errorf("the operator works where it is not to watch: %v, %v", elsewhere, err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	log, err := os.ReadFile(p.Log())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), "is forbidden") {
		t.Errorf("the operator lacks rights:\n%s", log)
	}
}

func deploymentOf(t *testing.T, core kubernetes.Interface, namespace, name string) (deployment *appsv1.Deployment) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (_ bool, err error) {
		deployment, err = core.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("no Deployment %s/%s: %v", namespace, name, err)
	}
	return deployment
}
