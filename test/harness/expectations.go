// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Expectation is a condition that an MCPServer should have.
type Expectation struct {
	// Condition is the type of the condition.
	Condition string
	Status    metav1.ConditionStatus
	Reason    string
	// Message has texts that the message contains.
	Message []string
}

// Saying returns the expectation that the message contains more texts.
func (e Expectation) Saying(message ...string) Expectation {
	e.Message = slices.Concat(e.Message, message)
	return e
}

// Missing returns what the status of an MCPServer lacks to be up to date and as expected; nil when it is.
func (e Expectation) Missing(server *v1beta1.MCPServer) error {
	if server.Status.ObservedGeneration != server.Generation {
		return fmt.Errorf("generation %d has not been looked at, only %d", server.Generation, server.Status.ObservedGeneration)
	}
	found := meta.FindStatusCondition(server.Status.Conditions, e.Condition)
	switch {
	case found == nil:
		return fmt.Errorf("there is no condition %s in %+v", e.Condition, server.Status)
	case found.Status != e.Status || found.Reason != e.Reason:
		return fmt.Errorf("condition %s is %s, %s: %q; it should be %s, %s",
			e.Condition, found.Status, found.Reason, found.Message, e.Status, e.Reason)
	}
	for _, part := range e.Message {
		if !strings.Contains(found.Message, part) {
			return fmt.Errorf("the message of condition %s is %q; it should name %q", e.Condition, found.Message, part)
		}
	}
	return nil
}

// unlike returns why the events are not exactly the expected one; "" when they are.
func (e Expectation) unlike(events []eventsv1.Event) string {
	first := events[0]
	switch {
	case len(events) > 1, first.Series != nil:
		return fmt.Sprintf("there is more than one: %+v", events)
	case first.Reason != e.Reason:
		return fmt.Sprintf("the reason is %s, not %s", first.Reason, e.Reason)
	}
	for _, part := range e.Message {
		if !strings.Contains(first.Note, part) {
			return fmt.Sprintf("it says %q; it should name %q", first.Note, part)
		}
	}
	return ""
}

// Fine is what a healthy MCPServer reports.
var Fine = []Expectation{
	{Condition: v1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready"},
	{Condition: v1beta1.ConditionSpecValid, Status: metav1.ConditionTrue, Reason: "Valid"},
	{Condition: v1beta1.ConditionApplied, Status: metav1.ConditionTrue, Reason: "Applied"},
	{Condition: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionTrue, Reason: "NoConflict"},
}

// WriteForbidden is what an MCPServer reports while the API server forbids the write of a child.
func WriteForbidden(message ...string) Expectation {
	return Expectation{Condition: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: "Forbidden", Message: message}
}

// TakenOver returns why an MCPServer does not report that it was taken over from ToolHive; nil when it does.
func TakenOver(server *v1beta1.MCPServer) error {
	condition := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionTakenOver)
	switch {
	case condition == nil:
		return errors.New("there is no such condition")
	case condition.Status != metav1.ConditionTrue:
		return fmt.Errorf("%s: %s", condition.Reason, condition.Message)
	}
	return nil
}

// AwaitStatus waits until an MCPServer's status is up to date and meets all expectations.
func (ns *Namespace) AwaitStatus(t *testing.T, name string, expected ...Expectation) *v1beta1.MCPServer {
	t.Helper()
	return ns.AwaitServer(t, name, "reports what is expected", func(server *v1beta1.MCPServer) error {
		for _, e := range expected {
			if err := e.Missing(server); err != nil {
				return err
			}
		}
		return nil
	})
}

// Warnings returns the Warning events about MCPServers, by MCPServer.
func (ns *Namespace) Warnings(ctx context.Context) (map[string][]eventsv1.Event, error) {
	list, err := ns.Core.EventsV1().Events(ns.Name).List(ctx, metav1.ListOptions{
		FieldSelector: "type=Warning,regarding.kind=" + v1beta1.MCPServerKind,
	})
	if err != nil {
		return nil, err
	}
	found := map[string][]eventsv1.Event{}
	for _, event := range list.Items {
		found[event.Regarding.Name] = append(found[event.Regarding.Name], event)
	}
	return found, nil
}

// AwaitOneWarning waits for a Warning event about an MCPServer, and fails the test unless it is as expected, the only one,
// and sent once.
func (ns *Namespace) AwaitOneWarning(t *testing.T, name string, expect Expectation) {
	t.Helper()
	ns.AwaitOneWarningEach(t, map[string]Expectation{name: expect})
}

// AwaitWarning waits until one of the Warning events about an MCPServer is as expected. Before it there may be others, such as of a pass
// that has ended before it tried all: one that takes ten seconds does, on a busy machine.
func (ns *Namespace) AwaitWarning(t *testing.T, name string, expect Expectation) {
	t.Helper()
	Eventually(t, "an event about the finding", func(ctx context.Context) error {
		warnings, err := ns.Warnings(ctx)
		if err != nil {
			return err
		}
		why := "there is none"
		for i := range warnings[name] {
			if why = expect.unlike(warnings[name][i : i+1]); why == "" {
				return nil
			}
		}
		return errors.New(why)
	})
}

// AwaitOneWarningEach is AwaitOneWarning for several MCPServers.
func (ns *Namespace) AwaitOneWarningEach(t *testing.T, expected map[string]Expectation) {
	t.Helper()
	Eventually(t, "an event about each finding", func(ctx context.Context) error {
		warnings, err := ns.Warnings(ctx)
		if err != nil {
			return err
		}
		for name, expect := range expected {
			if len(warnings[name]) == 0 {
				return fmt.Errorf("there is none about %s", name)
			}
			if why := expect.unlike(warnings[name]); why != "" {
				t.Fatalf("the events about %s: %s", name, why)
			}
		}
		return nil
	})
}
