// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// left is an MCPServer that is not taken over: it is as ToolHive has left it, but for one condition that says why.
type left struct {
	*installation
	name   string
	before map[harness.Component]*unstructured.Unstructured
	since  audit.Mark
}

func (s *installation) leave(t *testing.T, of, name string) *left {
	t.Helper()
	s.install(t, of, name)
	return &left{installation: s, name: name, before: s.MustObjectsOf(t, name), since: s.Mark(t)}
}

// awaitTold waits for the condition, sees that it is all that was written, and that it is told once, and returns it.
func (l *left) awaitTold(t *testing.T, reason string) metav1.Condition {
	t.Helper()
	var told metav1.Condition
	l.AwaitServer(t, l.name, "tells that it is left alone", func(server *v1beta1.MCPServer) error {
		for _, condition := range server.Status.Conditions {
			if told = condition; condition.Type == v1beta1.ConditionTakenOver && condition.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("it has conditions %v", server.Status.Conditions)
	})
	if told.Status != metav1.ConditionFalse {
		t.Errorf("the condition is %s", told.Status)
	}
	l.AwaitRest(t)
	harness.Eventually(t, "the event", func(ctx context.Context) error {
		events, err := l.takeoverEvents(ctx, l.name, reason)
		if err == nil && len(events) == 0 {
			err = fmt.Errorf("there is no event %s", reason)
		}
		return err
	})
	l.checkTold(t, reason)
	return told
}

// checkTold sees that the condition is all that was ever written, and that it was told once.
func (l *left) checkTold(t *testing.T, reason string) {
	t.Helper()
	after := l.MustObjectsOf(t, l.name)
	for component, object := range l.before {
		if component != harness.ServerItself && after[component].GetResourceVersion() != object.GetResourceVersion() {
			t.Errorf("%s was written to: %s", component, cmp.Diff(object.Object, after[component].Object))
		}
	}
	was, is := l.before[harness.ServerItself], after[harness.ServerItself]
	holders := holdings(t, is)
	for _, path := range holders[fmt.Sprintf("%s Apply %q %s", managers.Status, "status", v1beta1.SchemeGroupVersion)] {
		if condition := `.status.conditions[type="` + v1beta1.ConditionTakenOver + `"]`; !strings.HasPrefix(path, condition) {
			t.Errorf("%s owns %s", managers.Status, path)
		}
	}
	maps.DeleteFunc(holders, func(owner string, _ []string) bool { return strings.HasPrefix(owner, managers.Status+" ") })
	if diff := cmp.Diff(holdings(t, was), holders); diff != "" {
		t.Errorf("what others own of the MCPServer (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(withoutTakenOver(was), withoutTakenOver(is)); diff != "" {
		t.Errorf("the MCPServer (-before +after):\n%s", diff)
	}
	for _, e := range l.Writes(t, l.since) {
		if e.Resource != "events" && (e.Resource != "mcpservers" || e.Subresource != "status" || e.FieldManager != managers.Status) {
			t.Errorf("it should only have been told: %v\n%.500s", e, e.Body)
		}
	}
	events, err := l.takeoverEvents(t.Context(), l.name, reason)
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 1 || events[0].Series != nil {
		t.Errorf("there should be one event %s, there are %v", reason, events)
	}
}

// withoutTakenOver is the content of an MCPServer without that condition, and without what any write changes.
func withoutTakenOver(server *unstructured.Unstructured) map[string]any {
	bared := server.DeepCopy()
	bared.SetManagedFields(nil)
	bared.SetResourceVersion("")
	conditions, _, _ := unstructured.NestedSlice(bared.Object, "status", "conditions")
	var others []any
	for _, c := range conditions {
		if c.(map[string]any)["type"] != v1beta1.ConditionTakenOver {
			others = append(others, c)
		}
	}
	bared.Object["status"].(map[string]any)["conditions"] = others
	return bared.Object
}

// takeoverEvents are the events about an MCPServer with this reason.
func (s *installation) takeoverEvents(ctx context.Context, name, reason string) ([]eventsv1.Event, error) {
	list, err := s.Core.EventsV1().Events(s.Name).List(ctx, metav1.ListOptions{
		FieldSelector: fmt.Sprintf("regarding.name=%s,reason=%s", name, reason),
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// TestTakeoverManual waits for an approval, and goes on with the command that the condition gives.
func TestTakeoverManual(t *testing.T) {
	t.Parallel()
	s := newInstallation(t)
	one, other := s.leave(t, "edited", "approved"), s.leave(t, "plain", "waiting")
	one.since = other.since
	p := s.Operate(t, "--takeover=manual")
	told := one.awaitTold(t, "NeedsApproval")
	other.awaitTold(t, "NeedsApproval")

	mark := s.Mark(t)
	p = s.ReplaceOperator(t, p, "--takeover=manual", "--resync-period="+harness.ShortResync.String())
	harness.AwaitLooks(t, p, 0)
	s.Quiet(t, mark, harness.ShortResync+harness.Calm)

	_, command, ok := strings.Cut(told.Message, "kubectl annotate ")
	if !ok {
		t.Fatalf("the condition gives no command: %s", told.Message)
	}
	s.Kubectl(t).Shell(t, "kubectl annotate "+command)
	s.awaitTakenOver(t, one.name)
	s.AwaitRest(t)
	after := s.MustObjectsOf(t, one.name)
	s.checkRolls(t, one.name, one.before, after, false)
	for _, e := range s.Writes(t, mark) {
		if e.Resource != "events" && len(harness.CountWrites(other.name, []*audit.Event{e})) > 0 {
			t.Errorf("nobody has approved this: %v", e)
		}
	}
	if _, is := after[harness.ServerItself].GetAnnotations()[v1beta1.AnnotationTakeover]; !is {
		t.Error("the approval should stay: it is its author's")
	}
}

// TestTakeoverOff leaves alone what ToolHive has made, even when it is deleted, and makes what nobody has made.
func TestTakeoverOff(t *testing.T) {
	t.Parallel()
	s := newInstallation(t)
	s.install(t, "edited", "theirs")
	s.install(t, "plain", "deleted")
	versions, mark := s.Versions(t), s.Mark(t)
	p := s.Operate(t, "--takeover=off", "--resync-period="+harness.ShortResync.String())
	s.AwaitLook(t, p)
	s.Quiet(t, mark, harness.ShortResync+harness.Calm)
	if diff := cmp.Diff(versions, s.Versions(t)); diff != "" {
		t.Errorf("objects have changed (-before +after):\n%s", diff)
	}
	s.Delete(t, "deleted", metav1.DeletePropagationBackground)
	s.Quiet(t, mark, harness.Calm)

	s.Create(t, harness.HTTPServer("ours"))
	ours := s.AwaitSettled(t, "ours")
	if condition := meta.FindStatusCondition(ours.Status.Conditions, v1beta1.ConditionTakenOver); condition != nil {
		t.Errorf("nobody had it before: %+v", condition)
	}
	s.CheckOwnership(t, "ours")
	s.AwaitRest(t)
	for _, e := range s.Writes(t, mark) {
		if len(harness.CountWrites("theirs", []*audit.Event{e}))+len(harness.CountWrites("deleted", []*audit.Event{e})) > 0 {
			t.Errorf("that is ToolHive's: %v", e)
		}
	}
}

// TestTakeoverImpossible leaves alone an MCPServer that Freehold does not cover, and says why. When its author gives up
// what is not covered, it is taken over.
func TestTakeoverImpossible(t *testing.T) {
	t.Parallel()
	s := newInstallation(t)
	l := s.leave(t, "guarded", "guarded")
	p := s.Operate(t)
	told := l.awaitTold(t, "CannotTakeOver")
	if !strings.Contains(told.Message, "oidcConfigRef") {
		t.Errorf("the message does not name what is not covered: %s", told.Message)
	}
	mark := s.Mark(t)
	s.ReplaceOperator(t, p, "--resync-period="+harness.ShortResync.String())
	s.Quiet(t, mark, harness.ShortResync+harness.Calm)
	l.checkTold(t, "CannotTakeOver")

	s.Edit(t, l.name, func(server *v1beta1.MCPServer) { server.Spec.OIDCConfigRef = nil })
	s.awaitTakenOver(t, l.name)
	s.AwaitRest(t)
	s.CheckOwnership(t, l.name)
}
