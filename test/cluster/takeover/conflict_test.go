// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestTakeoverContested takes over MCPServers of which somebody has changed the backend's image by hand. That is a
// conflict as any other one. Where the conflict keeps the generation gate from being closed, the rest waits: a proxy of
// ours would write to the backend.
func TestTakeoverContested(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	const human, image = "kubectl-set", "example.com/by-hand:1"
	s := newInstallation(t)
	mark := s.Mark(t)
	waits := map[string]bool{"closed": false, "open": true}
	s.install(t, "edited", "closed")
	s.install(t, "plain", "open")
	for name := range waits {
		s.MustPatch(t, human, harness.Backend, name, harness.Replace("/spec/template/spec/containers/0/image", image))
		s.awaitRolledOut(t, name)
	}
	s.Operate(t)
	for name, waits := range waits {
		s.AwaitConflict(t, name, human, `.spec.template.spec.containers[name="mcp"].image`, "statefulset.apps/"+name)
		server := s.AwaitServer(t, name, "tells how far it is", func(server *v1beta1.MCPServer) error {
			if condition := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionTakenOver); condition == nil ||
				(condition.Status == metav1.ConditionFalse) != waits {
				return fmt.Errorf("TakenOver is %+v", condition)
			}
			return nil
		})
		s.awaitRolledOut(t, name)
		s.AwaitRest(t)
		s.WatchStanding(t, name, mark)
		s.CheckOneConflictEvent(t, name)
		objects := s.MustObjectsOf(t, name)
		if got := harness.ManagersOf(objects[harness.Backend], `.spec.template.spec.containers[name="mcp"].image`); !slices.Equal(got, []string{human}) {
			t.Errorf("the image of %s is owned by %v", name, got)
		}
		if _, theirs := podAnnotations(objects[harness.Proxy])[v1beta1.AnnotationGeneration]; theirs != waits {
			t.Errorf("the proxy of %s is still ToolHive's: %t; %+v", name, theirs, server.Status.Conditions)
		}
		if gate := podAnnotations(objects[harness.Backend])[v1beta1.AnnotationGeneration]; waits && gate != "1" {
			t.Errorf("the gate of %s is %s, and nothing was to be written", name, gate)
		}
		s.Edit(t, name, func(server *v1beta1.MCPServer) {
			server.Annotations = map[string]string{v1beta1.AnnotationTake: human}
		})
	}
	for name := range waits {
		s.awaitTakenOver(t, name)
		s.AwaitNoConflict(t, name)
	}
	s.AwaitRest(t)
	for name := range waits {
		s.CheckOwnership(t, name)
	}
}

func podAnnotations(workload *unstructured.Unstructured) map[string]string {
	found, _, _ := unstructured.NestedStringMap(workload.Object, "spec", "template", "metadata", "annotations")
	return found
}

// upstream acts as ToolHive's operator does, where that matters: whenever something has changed it writes what it wants,
// by update and whatever others have made of it.
type upstream struct {
	*installation
	name string
	want map[harness.Component]*unstructured.Unstructured
	stop context.CancelFunc
	done sync.WaitGroup
}

// beside runs ToolHive's operator, which wants what there is now.
func (s *installation) beside(t *testing.T, name string) *upstream {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	u := &upstream{installation: s, name: name, want: s.MustObjectsOf(t, name), stop: stop}
	u.done.Go(func() {
		ticker := time.NewTicker(harness.Poll)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if err := u.reconcile(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
				t.Errorf("ToolHive's operator: %v", err)
				return
			}
			<-ticker.C
		}
	})
	t.Cleanup(u.end)
	return u
}

func (u *upstream) end() {
	u.stop()
	u.done.Wait()
}

func (u *upstream) reconcile(ctx context.Context) error {
	for _, component := range []harness.Component{harness.ProxyAccount, harness.BackendAccount, harness.ProxyRole, harness.RunConfig, harness.Proxy} {
		live, err := u.Objects(component).Get(ctx, harness.FormOf(component).Name(u.name), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !u.bring(component, live) {
			continue
		}
		if _, err := u.Objects(component).Update(ctx, live, metav1.UpdateOptions{FieldManager: managers.ToolHiveOperator}); err != nil {
			return err
		}
	}
	live, err := u.Object(ctx, harness.ServerItself, u.name)
	if err != nil || !u.bringStatus(live) {
		return err
	}
	_, err = u.Objects(harness.ServerItself).UpdateStatus(ctx, live, metav1.UpdateOptions{FieldManager: managers.ToolHiveOperator})
	return err
}

// bring makes an object what ToolHive's operator wants it to be, and tells whether that changes it.
func (u *upstream) bring(component harness.Component, live *unstructured.Unstructured) bool {
	before, want := live.DeepCopy(), u.want[component]
	switch component {
	case harness.ProxyAccount, harness.BackendAccount:
		live.SetAnnotations(nil)
		live.SetLabels(nil)
	case harness.ProxyRole:
		live.Object["rules"] = want.Object["rules"]
	case harness.RunConfig:
		live.Object["data"] = want.Object["data"]
		annotations := live.GetAnnotations()
		maps.Copy(annotations, want.GetAnnotations())
		live.SetAnnotations(annotations)
	case harness.Proxy:
		live.SetLabels(want.GetLabels())
		live.Object["spec"].(map[string]any)["template"] = want.Object["spec"].(map[string]any)["template"]
	}
	return !equality.Semantic.DeepEqual(before, live)
}

// bringStatus is bring for the status of the MCPServer. Conditions that it does not know stay.
func (u *upstream) bringStatus(live *unstructured.Unstructured) bool {
	before := live.DeepCopy()
	want := u.want[harness.ServerItself].DeepCopy().Object["status"].(map[string]any)
	status, _ := live.Object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, c := range want["conditions"].([]any) {
		at := slices.IndexFunc(conditions, func(has any) bool { return has.(map[string]any)["type"] == c.(map[string]any)["type"] })
		if at < 0 {
			conditions = append(conditions, c)
		} else {
			conditions[at] = c
		}
	}
	maps.Copy(status, want)
	status["conditions"] = conditions
	return !equality.Semantic.DeepEqual(before, live)
}

// TestTakeoverBesideToolHive takes over while ToolHive's operator still runs, by mistake. It is told soon and by name,
// nobody writes without end, and when ToolHive's operator is gone its claims can be taken.
func TestTakeoverBesideToolHive(t *testing.T) {
	t.Parallel()
	for of := range map[string]bool{"edited": true, "plain": true, "edited-stdio": true} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			s := newInstallation(t)
			s.install(t, of, takenName)
			u := s.beside(t, takenName)
			// ToolHive may have written its Role again, with rights that we have not, when we write the binding to it.
			s.Expect(t, harness.Forbidden, s.Name)
			mark := s.Mark(t)
			s.Operate(t)
			s.AwaitConflict(t, takenName, managers.ToolHiveOperator)
			s.AwaitWorkloads(t, takenName)
			s.AwaitRest(t)
			ours, theirs := s.Writes(t, mark), s.writesOfToolHive(t, mark)
			const bound = 60
			if len(ours) > bound || theirs > bound {
				t.Errorf("we have written %d times, and ToolHive %d times", len(ours), theirs)
			}
			t.Logf("we have written %d times, and ToolHive %d times", len(ours), theirs)
			s.WatchStanding(t, takenName, mark)
			if more := s.writesOfToolHive(t, mark) - theirs; more > 0 {
				t.Errorf("ToolHive has written %d times more", more)
			}

			u.end()
			s.Edit(t, takenName, func(server *v1beta1.MCPServer) {
				server.Annotations = map[string]string{v1beta1.AnnotationTake: managers.ToolHiveOperator}
			})
			s.awaitTakenOver(t, takenName)
			s.AwaitNoConflict(t, takenName)
			s.AwaitRest(t)
			s.CheckOwnership(t, takenName)
		})
	}
}

func (s *installation) writesOfToolHive(t *testing.T, since audit.Mark) int {
	t.Helper()
	s.Mark(t)
	events, _, err := s.Audit.Since(since, audit.Writes(), audit.Namespace(s.Name), func(e *audit.Event) bool {
		return e.FieldManager == managers.ToolHiveOperator
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(events)
}
