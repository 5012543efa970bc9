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
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
)

// AwaitConflict waits until an MCPServer reports a conflict for its present generation, in a message that has all that is
// named.
func (ns *Namespace) AwaitConflict(t *testing.T, name string, named ...string) {
	t.Helper()
	ns.AwaitServer(t, name, "tells of the conflict", func(server *v1beta1.MCPServer) error {
		found := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsOwned)
		if found == nil || found.Status != metav1.ConditionFalse || found.Reason != "FieldManagerConflict" ||
			found.ObservedGeneration != server.Generation {
			return fmt.Errorf("condition FieldsOwned is %+v", found)
		}
		for _, part := range named {
			if !strings.Contains(found.Message, part) {
				return fmt.Errorf("condition FieldsOwned does not name %s: %s", part, found.Message)
			}
		}
		return nil
	})
}

// AwaitNoConflict waits until an MCPServer reports that there is no conflict.
func (ns *Namespace) AwaitNoConflict(t *testing.T, name string) {
	t.Helper()
	ns.AwaitServer(t, name, "tells of no conflict", func(server *v1beta1.MCPServer) error {
		if !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionFieldsOwned) {
			return errors.New("condition FieldsOwned is not True")
		}
		return nil
	})
}

// Standing is how long WatchStanding watches a conflict. Retries would come after 0.2 s, 0.4 s, 0.8 s and so on.
const Standing = 4 * time.Second

// WatchStanding waits until the control plane has finished its work, rollouts included. Then it fails the test if the operator
// writes, or tries to, while the conflict stands.
func (ns *Namespace) WatchStanding(t *testing.T, name string, since audit.Mark) {
	t.Helper()
	ns.AwaitWorkloads(t, name)
	ns.AwaitCalm(t, name)
	if found, _ := ns.WritesFor(t, name, ns.Mark(t), Standing); found {
		t.Errorf("something was written, or tried, long after the conflict: %v", ns.Writes(t, since))
	}
}

// CheckOneConflictEvent checks that exactly one event reports the conflict, and that it was sent once.
func (ns *Namespace) CheckOneConflictEvent(t *testing.T, name string) {
	t.Helper()
	var found []eventsv1.Event
	Eventually(t, "there is an event", func(ctx context.Context) error {
		list, err := ns.Core.EventsV1().Events(ns.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Name != name || e.Reason != "FieldManagerConflict"
		})
		if len(found) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	if len(found) != 1 || found[0].Series != nil || found[0].Type != corev1.EventTypeWarning {
		t.Errorf("there should be one warning: %+v", found)
	}
}
