// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// objectHistory has the versions of one object, in their order.
type objectHistory []harness.Version

func (s objectHistory) last() harness.Version { return s[len(s)-1] }

// there reports whether the object existed when the recording began.
func (s objectHistory) there() bool { return s[0].Listed }

// historiesOf returns the histories of the objects that an owner controls.
func historiesOf(t *testing.T, h *harness.History, owner types.UID) (histories []objectHistory) {
	t.Helper()
	all := map[types.UID]objectHistory{}
	for _, v := range h.Complete(t) {
		all[v.GetUID()] = append(all[v.GetUID()], v)
	}
	for _, s := range all {
		if controller := metav1.GetControllerOf(s.last()); controller != nil && controller.UID == owner {
			histories = append(histories, s)
		}
	}
	return histories
}

// movements are the recordings that tell which pods a takeover restarts.
type movements struct {
	pods, replicaSets, revisions, events *harness.History
	begin                                audit.Mark
}

func recordMovements(t *testing.T, ns *harness.Namespace) *movements {
	t.Helper()
	apps := harness.FormOf(harness.Backend).Resource.GroupVersion()
	return &movements{
		pods:        ns.Record(t, schema.GroupVersionResource{Version: "v1", Resource: "pods"}),
		replicaSets: ns.Record(t, apps.WithResource("replicasets")),
		revisions:   ns.Record(t, apps.WithResource("controllerrevisions")),
		events:      ns.Record(t, schema.GroupVersionResource{Version: "v1", Resource: "events"}),
		begin:       ns.Mark(t),
	}
}

// moved is what became of the pods of one MCPServer.
type moved struct {
	// rolls are how many new pod templates each workload has had.
	proxyRolls, backendRolls int
	// made and ended are how many pods came and went.
	proxiesMade, proxiesEnded, backendsMade, backendsEnded int
	// restarts are how often containers were restarted, of those that have ended too. Not counted are containers that the kubelet
	// killed because a probe had no answer in time: on a busy machine that happens to any of them.
	proxyRestarts, backendRestarts int64
	// recovered is how many proxies, old or new, the operator has deleted because they still waited out a back-off when their
	// backend was ready again.
	recovered int
}

func (m *movements) of(t *testing.T, w *world, server string) (found moved) {
	t.Helper()
	killed := m.killed(t)
	deployment := w.MustObject(t, harness.Proxy, server).GetUID()
	for _, set := range historiesOf(t, m.replicaSets, deployment) {
		if !set.there() {
			found.proxyRolls++
		}
		pods := historiesOf(t, m.pods, set.last().GetUID())
		made, ended, restarts := count(t, pods, killed)
		found.proxiesMade, found.proxiesEnded = found.proxiesMade+made, found.proxiesEnded+ended
		found.proxyRestarts += restarts
		for _, pod := range pods {
			if restartsIn(t, pod.last()) > restartsBefore(t, pod) && m.isDeleted(t, w, pod.last().GetName()) {
				found.recovered++
			}
		}
	}
	statefulSet := w.MustObject(t, harness.Backend, server).GetUID()
	for _, revision := range historiesOf(t, m.revisions, statefulSet) {
		if !revision.there() {
			found.backendRolls++
		}
	}
	found.backendsMade, found.backendsEnded, found.backendRestarts = count(t, historiesOf(t, m.pods, statefulSet), killed)
	return found
}

// killed is how often the kubelet restarted containers because a probe had no answer in time, by pods. It tells so by
// events, each with a count.
func (m *movements) killed(t *testing.T) map[types.UID]int64 {
	t.Helper()
	counted, times := map[types.UID]int64{}, map[types.UID]int64{}
	for _, v := range m.events.Complete(t) {
		event := typed[corev1.Event](t, v.Unstructured)
		if v.Deleted || event.Reason != "Killing" || !strings.HasSuffix(event.Message, " probe, will be restarted") {
			continue
		}
		if !v.Listed {
			times[event.InvolvedObject.UID] += int64(event.Count) - counted[event.UID]
		}
		counted[event.UID] = int64(event.Count)
	}
	return times
}

// isDeleted reports whether the operator has deleted a pod.
func (m *movements) isDeleted(t *testing.T, w *world, pod string) bool {
	t.Helper()
	return slices.ContainsFunc(w.Writes(t, m.begin), func(e *audit.Event) bool {
		return e.Verb == "delete" && e.Resource == "pods" && e.Name == pod && e.Succeeded()
	})
}

func count(t *testing.T, pods []objectHistory, killed map[types.UID]int64) (made, ended int, restarts int64) {
	t.Helper()
	for _, pod := range pods {
		if !pod.there() {
			made++
		}
		if pod.last().Deleted || pod.last().GetDeletionTimestamp() != nil {
			ended++
		}
		late := killed[pod.last().GetUID()]
		if late > 0 {
			t.Logf("the kubelet killed containers of %s %d times because a probe had no answer in time", pod.last().GetName(), late)
		}
		restarts += max(0, restartsIn(t, pod.last())-restartsBefore(t, pod)-late)
	}
	return made, ended, restarts
}

// restartsBefore is how often the containers of a pod had been restarted when the recording began.
func restartsBefore(t *testing.T, pod objectHistory) int64 {
	t.Helper()
	if !pod.there() {
		return 0
	}
	return restartsIn(t, pod[0])
}

func restartsIn(t *testing.T, pod harness.Version) (restarts int64) {
	t.Helper()
	statuses, _, err := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range statuses {
		fields, _ := item.(map[string]any)
		n, _ := fields["restartCount"].(int64)
		restarts += n
	}
	return restarts
}

// check checks that no pod was restarted without need: those of the proxies once, and those of a backend not at all
// where the gate keeps runners away, or else once.
func (m moved) check(t *testing.T, gate, proxies, backends int) {
	t.Helper()
	t.Logf("%+v", m)
	want := moved{proxyRolls: 1, proxiesMade: proxies, proxiesEnded: proxies}
	if gate == 1 {
		// ToolHive's runner ends when its backend is not ready, and is started again.
		want.proxyRestarts, want.recovered = m.proxyRestarts, m.recovered
		want.proxiesMade, want.proxiesEnded = proxies+m.recovered, proxies+m.recovered
		want.backendRolls, want.backendsMade, want.backendsEnded = 1, backends, backends
	}
	if m != want {
		t.Errorf("the pods had the movements %+v, want %+v", m, want)
	}
}

// sortedKeys are the keys of a map in their order.
func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
