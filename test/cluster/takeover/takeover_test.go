// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

// covered are the recordings of MCPServers that Freehold takes over, by whether that rolls the pods of the backend out
// anew: ToolHive's runners could still write to one that was never edited, so its generation gate has to be closed.
var covered = map[string]bool{
	"plain": true, "edited": false, "edited-stdio": false, "sidecar": false, "numbers": false, "scaled": false, "policies": false,
	"restarted": false, "newer": false,
}

// TestTakeover takes MCPServers over from ToolHive. All of it is Freehold's then, what others own is theirs, and no pod
// was replaced that needed not be. After that there is nothing to do, not even for an operator that has seen nothing.
func TestTakeover(t *testing.T) {
	t.Parallel()
	s := newInstallation(t)
	before := map[string]map[harness.Component]*unstructured.Unstructured{}
	for of := range covered {
		s.make(t, readRecording(t, of), of)
	}
	for of := range covered {
		s.awaitRolledOut(t, of)
		before[of] = s.MustObjectsOf(t, of)
	}
	began := s.Mark(t)
	first := s.Operate(t)
	for of := range covered {
		s.awaitTakenOver(t, of)
	}
	s.AwaitRest(t)
	writes := s.Writes(t, began)
	for of, rolls := range covered {
		after := s.MustObjectsOf(t, of)
		for _, wrong := range strayOwnersButUsers(harness.ServerOf(t, after), after) {
			t.Error(wrong)
		}
		for component, object := range before[of] {
			// Configuration has a name that ToolHive does not give it, so it is another object.
			named := component == harness.RunConfig || component == harness.InlineAuthz
			if got := after[component]; got == nil || !named && got.GetUID() != object.GetUID() {
				t.Errorf("%s of %s is not the one that it was", component, of)
			}
		}
		s.checkRolls(t, of, before[of], after, rolls)
		checkOrder(t, of, writes, rolls)
	}
	for _, e := range writes {
		if e.Verb == "delete" || e.Code == http.StatusForbidden || e.Code == http.StatusUnprocessableEntity {
			t.Errorf("a request that should not have been: %v\n%.500s", e, e.Body)
		}
	}
	// A field that was contested for a moment would have been told.
	warned, err := s.Warnings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, events := range warned {
		for _, event := range events {
			// The resources of policies are its proxy's alone.
			if event.Reason != "SessionStorageMissingForReplicas" && (name != "policies" || event.Reason != "ProxyOnly") {
				t.Errorf("there is a warning about %s: %s: %s", name, event.Reason, event.Note)
			}
		}
	}
	s.settleAndStayQuiet(t, first)
}

// awaitTakenOver waits until an MCPServer is Freehold's, and has come to rest.
func (s *installation) awaitTakenOver(t *testing.T, name string) *v1beta1.MCPServer {
	t.Helper()
	s.AwaitServer(t, name, "is taken over", harness.TakenOver)
	return s.AwaitSettled(t, name)
}

// strayOwnersButUsers is harness.StrayOwners for workloads that an autoscaler may have scaled and a user restarted.
func strayOwnersButUsers(server *v1beta1.MCPServer, objects map[harness.Component]*unstructured.Unstructured) []string {
	return slices.DeleteFunc(harness.StrayOwners(server, objects), func(wrong string) bool {
		return wrong == fmt.Sprintf("%s of MCPServer %s: kube-controller-manager/scale owns fields by Update", harness.Proxy, server.Name) ||
			strings.HasSuffix(wrong, ": kubectl-rollout owns fields by Update")
	})
}

// checkRolls looks at how often the pods of the two workloads were replaced: those of the proxy once, those of the
// backend not at all, or once. Their numbers stay.
func (s *installation) checkRolls(
	t *testing.T, name string, before, after map[harness.Component]*unstructured.Unstructured, rolls bool,
) {
	t.Helper()
	if was, is := rollouts(before[harness.Proxy]), rollouts(after[harness.Proxy]); is != was+1 {
		t.Errorf("the proxy of %s was rolled out %d times, not once", name, is-was)
	}
	changes := after[harness.Backend].GetGeneration() - before[harness.Backend].GetGeneration()
	if want := map[bool]int64{true: 1}[rolls]; changes != want {
		t.Errorf("the spec of the backend of %s was changed %d times, not %d", name, changes, want)
	}
	for _, component := range []harness.Component{harness.Proxy, harness.Backend} {
		had, _, _ := unstructured.NestedInt64(before[component].Object, "spec", "replicas")
		has, _, _ := unstructured.NestedInt64(after[component].Object, "spec", "replicas")
		if had != has {
			t.Errorf("%s of %s has %d replicas, and had %d", component, name, has, had)
		}
	}
	same := cmp.Equal(before[harness.Backend].Object["spec"], after[harness.Backend].Object["spec"])
	if same == rolls {
		t.Errorf("the spec of the backend of %s is the same: %t", name, same)
	}
	for component, object := range after {
		for _, entry := range object.GetManagedFields() {
			if managers.IsToolHive(entry.Manager) {
				fields, _ := ownership.Fields(&entry)
				t.Errorf("%s of %s: %s still owns %v", component, name, entry.Manager, fields)
			}
		}
	}
}

// checkOrder compares when the components of an MCPServer were taken. Where the backend's gate is closed, the proxy goes first;
// where it is open, the backend does. The rights go when no proxy needs them any more, and nobody can give away rights
// that he does not have.
func checkOrder(t *testing.T, name string, writes []*audit.Event, opened bool) {
	t.Helper()
	want := []harness.Component{harness.Proxy, harness.ProxyRole, harness.ProxyBinding, harness.Backend}
	if opened {
		want = []harness.Component{harness.Backend, harness.Proxy, harness.ProxyRole, harness.ProxyBinding}
	}
	var got []harness.Component
	for _, e := range writes {
		if component := harness.Component(soleItem(name, e)); e.FieldManager == managers.Ownership && slices.Contains(want, component) {
			got = append(got, component)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the order in which the components of %s were taken (-want +got):\n%s", name, diff)
	}
}

// rollouts is how often the pods of a Deployment were rolled out.
func rollouts(deployment *unstructured.Unstructured) int {
	revision, _ := strconv.Atoi(deployment.GetAnnotations()["deployment.kubernetes.io/revision"])
	return revision
}

// settleAndStayQuiet sees that nothing more is asked for: not while time passes, not by an operator that has seen
// nothing yet, and not when that looks at everything again.
func (s *installation) settleAndStayQuiet(t *testing.T, first interface{ Stop() error }) {
	t.Helper()
	s.AwaitRest(t)
	mark, versions := s.Mark(t), s.Versions(t)
	s.Quiet(t, mark, harness.Calm)
	if err := first.Stop(); err != nil {
		t.Errorf("the operator did not end well: %v", err)
	}
	mark = s.Mark(t)
	second := s.Operate(t, "--resync-period="+harness.ShortResync.String())
	s.AwaitLook(t, second)
	harness.AwaitLooks(t, second, 3*len(versions)/12)
	s.Quiet(t, mark, harness.Calm+time.Second)
	if diff := cmp.Diff(versions, s.Versions(t)); diff != "" {
		t.Errorf("objects have changed (-before +after):\n%s", diff)
	}
}
