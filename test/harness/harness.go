// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness gives suites a real control plane with Freehold installed, and the means to look at it from
// outside: the audit log, managedFields, resourceVersions.
package harness

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// Timeout is how long a suite waits for something that is to happen. It is long because the machines are small;
// what is measured is measured otherwise.
const Timeout = 3 * time.Minute

// Poll is how often a suite looks at first, see Eventually.
const Poll = 50 * time.Millisecond

// Env is a cluster with Freehold's definitions and rights, and without a running operator.
type Env struct {
	Cluster *cluster.Cluster
	// Config, Core and Servers have all rights.
	Config  *rest.Config
	Core    kubernetes.Interface
	Servers versioned.Interface
	// Audit reads what reached the API server.
	Audit *audit.Reader
	// Numbers are what the suites count.
	Numbers Numbers

	options        cluster.Options
	keepNamespaces bool
	dir            string
	binary         string
	kubeconfig     string
	records        records
}

// gcPercent lets the control planes of the suites collect garbage less often. They have memory to spare, but share few processors.
const gcPercent = 400

// unreached are the controllers of a cluster with fake pods: all but those that write where the pods of a Service are, which nobody
// connects to. A sixth of all writes is theirs.
const unreached = "*,-endpoints-controller,-endpointslice-controller,-endpointslice-mirroring-controller"

// New starts a cluster, builds the operator and installs Freehold.
func New(ctx context.Context, options cluster.Options) (*Env, error) {
	env, err := NewBare(ctx, options)
	if err != nil {
		return env, err
	}
	if err = operator.Install(ctx, env.Config, os.Stderr); err == nil {
		err = env.Installed(ctx)
	}
	if err != nil {
		env.Close()
	}
	return env, err
}

// NewBare starts a cluster and builds the operator. Freehold is not installed: who does so calls Installed then. Without real nodes,
// Services get no endpoints, unless the options say which controllers run.
func NewBare(ctx context.Context, options cluster.Options) (env *Env, err error) {
	options.GCPercent = cmp.Or(options.GCPercent, gcPercent)
	if !options.RealNodes {
		options.Controllers = cmp.Or(options.Controllers, unreached)
	}
	env = &Env{options: options}
	defer func() {
		if err != nil {
			env.Close()
		}
	}()
	if env.dir, err = os.MkdirTemp("", "freehold-test-"); err != nil {
		return env, err
	}
	env.binary = filepath.Join(env.dir, "freehold")
	if err := operator.Build(ctx, env.binary); err != nil {
		return env, err
	}
	if env.Cluster, err = cluster.Start(ctx, options); err != nil {
		return env, fmt.Errorf("no cluster: %w", err)
	}
	env.Config = env.Cluster.RESTConfig()
	env.Config.Wrap(newPatient)
	env.Audit = audit.NewKeepingReader(env.Cluster.AuditLog())
	if env.Core, err = kubernetes.NewForConfig(env.Config); err != nil {
		return env, err
	}
	env.Servers, err = versioned.NewForConfig(env.Config)
	return env, err
}

// Installed lets the cluster know that Freehold was installed: its kinds, and the rights of its operators.
func (e *Env) Installed(ctx context.Context) (err error) {
	if err := e.knowMCPServers(ctx); err != nil {
		return err
	}
	e.kubeconfig, err = e.Cluster.ServiceAccountKubeconfig(ctx, operator.Namespace, operator.ServiceAccount)
	return err
}

// NewForTest starts a control plane, with Freehold installed, for one test: one that disturbs the control plane itself. It
// ends with the test.
func NewForTest(t *testing.T) *Env {
	t.Helper()
	own, err := New(t.Context(), cluster.Options{AuditBodies: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
	return own
}

// knowMCPServers lets the garbage collector know the new kind. It looks for such every 30 s, and when it starts.
func (e *Env) knowMCPServers(ctx context.Context) error {
	if e.options.APIServerOnly {
		return nil
	}
	if err := e.Cluster.StopComponent(cluster.ControllerManager); err != nil {
		return err
	}
	return e.Cluster.StartComponent(ctx, cluster.ControllerManager)
}

// Close ends the cluster. The error, if any, is that of its processes.
func (e *Env) Close() error {
	var err error
	if e.Cluster != nil {
		err = e.Cluster.Stop()
	}
	_ = os.RemoveAll(e.dir)
	return err
}

// createNamespace creates a namespace, and deletes it when the test ends, unless they are kept. The API server completes a generateName;
// who gave another name may need that again.
func (e *Env) createNamespace(t *testing.T, meta metav1.ObjectMeta) string {
	t.Helper()
	namespace, err := e.Core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if e.keepNamespaces && meta.GenerateName != "" {
		return namespace.Name
	}
	t.Cleanup(func() {
		// The test's own context has ended.
		if err := e.clear(context.WithoutCancel(t.Context()), namespace.Name); err != nil && !apierrors.IsNotFound(err) {
			t.Logf("namespace %s stays: %v", namespace.Name, err)
		}
	})
	return namespace.Name
}

// clear deletes a namespace. No operator is there any more that would release the MCPServers.
func (e *Env) clear(ctx context.Context, namespace string) error {
	if err := e.Core.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
		return err
	}
	client := e.Servers.ToolhiveV1beta1().MCPServers(namespace)
	servers, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	release := []byte(`{"metadata":{"finalizers":null}}`)
	for i := range servers.Items {
		_, err := client.Patch(ctx, servers.Items[i].Name, types.MergePatchType, release, metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// Invariants returns what must hold of all requests of the operators that ran so far.
func (e *Env) Invariants() Invariants {
	runs, exceptions := e.records.snapshot()
	return Invariants{Registry: managers.Registry(), Runs: runs, Exceptions: exceptions}
}

// Violations checks the audit log from its beginning. It also returns how many requests of operators it looked at.
func (e *Env) Violations(ctx context.Context) (violations []Violation, requests int, err error) {
	// What has been answered is in the log when our own request is.
	if _, err := e.Cluster.AuditMark(ctx); err != nil {
		return nil, 0, err
	}
	invariants := e.Invariants()
	events, _, err := e.Audit.Since(audit.Mark{}, invariants.Filter())
	if err != nil {
		return nil, 0, err
	}
	return invariants.Check(events), countOfOperators(events), nil
}
