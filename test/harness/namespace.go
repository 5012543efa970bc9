// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1 "github.com/freehold-dev/freehold/generated/clientset/versioned/typed/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
)

// Calm is how long nothing may happen where a test wants to see that nothing more happens. A retry with the shortest
// back-off, a requeue, or an answer to the operator's own write would come well within it.
const Calm = 2 * time.Second

// The field managers of those who write to the cluster in tests.
const (
	// Author writes MCPServers.
	Author = "test-author"
	// Hand is a human at work on the children.
	Hand = "kubectl-edit"
	// Team knows server-side apply.
	Team = "team"
)

// ForeignKey is a label or annotation that Freehold does not know.
const ForeignKey = "example.com/foreign"

// FirstContainer is the JSON pointer to the first container in the pod template of a workload.
const FirstContainer = "/spec/template/spec/containers/0"

// Namespace is a namespace that belongs to one test. The test acts in it as users do, and its operators watch only it.
type Namespace struct {
	*Env
	// Name of the namespace.
	Name string
	// Servers is the client for its MCPServers.
	Servers toolhivev1beta1.MCPServerInterface

	dynamic dynamic.Interface
}

// Namespace creates a namespace, and deletes it when the test ends, see Suite.KeepNamespaces.
func (e *Env) Namespace(t *testing.T) *Namespace {
	t.Helper()
	return e.namespace(t, metav1.ObjectMeta{GenerateName: "test-"})
}

// NamespaceNamed is Namespace with a name, for a test whose objects have that name in them. It waits until an earlier one is
// gone.
func (e *Env) NamespaceNamed(t *testing.T, name string) *Namespace {
	t.Helper()
	Eventually(t, "no namespace "+name, func(ctx context.Context) error {
		_, err := e.Core.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	return e.namespace(t, metav1.ObjectMeta{Name: name})
}

func (e *Env) namespace(t *testing.T, meta metav1.ObjectMeta) *Namespace {
	t.Helper()
	client, err := dynamic.NewForConfig(e.Config)
	if err != nil {
		t.Fatal(err)
	}
	name := e.createNamespace(t, meta)
	return &Namespace{Env: e, Name: name, Servers: e.Servers.ToolhiveV1beta1().MCPServers(name), dynamic: client}
}

// Operate runs an operator that watches the namespace alone, until the test ends or it is stopped.
func (ns *Namespace) Operate(t *testing.T, args ...string) *operator.Process {
	t.Helper()
	return ns.Operator(t, append([]string{Watching(ns.Name)}, args...)...)
}

// OperateLogged is Operate with what reads the operator's log, as far as it has been written.
func (ns *Namespace) OperateLogged(t *testing.T, args ...string) (*operator.Process, func() string) {
	t.Helper()
	return ns.Logged(t, append([]string{Watching(ns.Name)}, args...)...)
}

// Stop ends an operator, and fails the test when that does not end well.
func Stop(t *testing.T, p *operator.Process) {
	t.Helper()
	if err := p.Stop(); err != nil {
		t.Fatalf("the operator did not end well: %v", err)
	}
}

// Create makes an MCPServer.
func (ns *Namespace) Create(t *testing.T, server *v1beta1.MCPServer) *v1beta1.MCPServer {
	t.Helper()
	created, err := ns.Servers.Create(t.Context(), server, metav1.CreateOptions{FieldManager: Author})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// Edit changes an MCPServer as kubectl edit does.
func (ns *Namespace) Edit(t *testing.T, name string, change func(*v1beta1.MCPServer)) *v1beta1.MCPServer {
	t.Helper()
	var edited *v1beta1.MCPServer
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		server, err := ns.Servers.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(server)
		edited, err = ns.Servers.Update(t.Context(), server, metav1.UpdateOptions{FieldManager: Author})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return edited
}

// Delete begins to delete an MCPServer.
func (ns *Namespace) Delete(t *testing.T, name string, propagation metav1.DeletionPropagation) {
	t.Helper()
	if err := ns.Servers.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &propagation}); err != nil {
		t.Fatal(err)
	}
}

// AwaitGone waits until an MCPServer is gone for good.
func (ns *Namespace) AwaitGone(t *testing.T, name string) {
	t.Helper()
	Eventually(t, "the end of MCPServer "+name, func(ctx context.Context) error {
		server, err := ns.Servers.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("it is there, deleted at %v, with finalizers %v", server.DeletionTimestamp, server.Finalizers)
	})
}

// Mark returns a mark in the audit log behind everything that has been answered so far.
func (ns *Namespace) Mark(t *testing.T) audit.Mark {
	t.Helper()
	mark, err := ns.Cluster.AuditMark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return mark
}

// ByOperator wants the requests of operators in the namespace.
func (ns *Namespace) ByOperator() audit.Filter {
	mine := audit.User(OperatorUser)
	return func(e *audit.Event) bool { return e.Namespace == ns.Name && mine(e) }
}

// Writes returns what operators wrote in the namespace since the mark, refused writes included.
func (ns *Namespace) Writes(t *testing.T, since audit.Mark) []*audit.Event {
	t.Helper()
	// A request of the operator may have been answered, and not be in the log yet. Ours then comes behind it.
	ns.Mark(t)
	events, _, err := ns.Audit.Since(since, audit.Writes(), ns.ByOperator())
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// WritesByOthers returns how often others than operators have written to a component of an MCPServer since the mark.
func (ns *Namespace) WritesByOthers(t *testing.T, since audit.Mark, component Component, server string) int {
	t.Helper()
	form := FormOf(component)
	events, _, err := ns.Audit.Since(since, audit.Writes(), audit.Succeeded(), audit.Namespace(ns.Name),
		audit.Resource(form.Resource.Group, form.Resource.Resource), audit.Not(audit.User(OperatorUser)),
		func(e *audit.Event) bool { return form.Is(server, e.Name) })
	if err != nil {
		t.Fatal(err)
	}
	return len(events)
}

// Quiet waits for some time, and fails the test as soon as an operator has written something in the namespace, or
// tried to, or asked for something, since the mark. Streams of events that go on, and ListsInVain, do not count. With filters, it is
// about the requests alone that they want.
func (ns *Namespace) Quiet(t *testing.T, since audit.Mark, lasting time.Duration, filters ...audit.Filter) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lasting)
	defer cancel()
	found, _, err := ns.Audit.WaitFor(ctx, since, some, append(filters, ns.ByOperator(), audit.Not(audit.Verb("watch")), audit.Not(ListsInVain))...)
	if len(found) > 0 {
		var lines []string
		for _, e := range found {
			lines = append(lines, fmt.Sprintf("%v\n    %.2000s", e, e.Body))
		}
		t.Fatalf("there should be no request, but there was\n%s", strings.Join(lines, "\n"))
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

// ListsInVain selects lists of kinds that the API server does not serve. Operators make one in a minute or less often, at rest too.
func ListsInVain(e *audit.Event) bool { return e.Verb == "list" && e.Code == http.StatusNotFound }

func some(events []*audit.Event) bool { return len(events) > 0 }

// AwaitWrites waits until operators have made writes in the namespace, since the mark, that are as wanted.
func (ns *Namespace) AwaitWrites(t *testing.T, since audit.Mark, what string, wanted func([]*audit.Event) bool) []*audit.Event {
	t.Helper()
	ctx, cancel := WithinPace(t.Context(), Timeout)
	defer cancel()
	found, _, err := ns.Audit.WaitFor(ctx, since, wanted, audit.Writes(), ns.ByOperator())
	if err != nil {
		t.Fatalf("%s: %v, after %v", what, err, found)
	}
	return found
}
