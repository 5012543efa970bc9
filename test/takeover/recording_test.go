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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	toolswatch "k8s.io/client-go/tools/watch"

	"github.com/freehold-dev/freehold/test/harness"
)

// recorded are all objects of a kind that a namespace has had since the recording began, and what they were like. It is
// watched, so that none is missing, however short it lived.
type recorded struct {
	client dynamic.ResourceInterface

	mu      sync.Mutex
	objects map[types.UID]*story
	err     error
}

// story is what became of one object.
type story struct {
	// versions are those that it had, in their order.
	versions []*unstructured.Unstructured
	// there tells that it was there when the recording began.
	there bool
	// gone tells that it is there no more.
	gone bool
}

func (s *story) last() *unstructured.Unstructured { return s.versions[len(s.versions)-1] }

// record starts a recording. It ends with the test.
func record(t *testing.T, s *harness.Space, resource schema.GroupVersionResource) *recorded {
	t.Helper()
	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorded{client: client.Resource(resource).Namespace(s.Name), objects: map[types.UID]*story{}}
	list, err := r.client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		object := &list.Items[i]
		r.objects[object.GetUID()] = &story{versions: []*unstructured.Unstructured{object}, there: true}
	}
	watcher, err := toolswatch.NewRetryWatcherWithContext(t.Context(), list.GetResourceVersion(), r)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for event := range watcher.ResultChan() {
			r.add(event)
		}
	})
	t.Cleanup(func() {
		watcher.Stop()
		done.Wait()
	})
	return r
}

// WatchWithContext implements cache.WatcherWithContext.
func (r *recorded) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return r.client.Watch(ctx, options)
}

func (r *recorded) add(event watch.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Error || event.Type == watch.Bookmark {
		// What comes after an error has a gap before it.
		r.err = fmt.Errorf("the watch was interrupted: %s %+v", event.Type, event.Object)
		return
	}
	known := r.objects[object.GetUID()]
	if known == nil {
		known = &story{}
		r.objects[object.GetUID()] = known
	}
	known.versions = append(known.versions, object)
	known.gone = event.Type == watch.Deleted
}

// of returns the stories of those that an owner controls, once they tell of all that the API server has now.
func (r *recorded) of(t *testing.T, owner types.UID) (stories []*story) {
	t.Helper()
	list, err := r.client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the recording is complete", func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.err != nil {
			t.Fatal(r.err)
		}
		for i := range list.Items {
			live := &list.Items[i]
			known := r.objects[live.GetUID()]
			if known == nil || !slices.ContainsFunc(known.versions, func(v *unstructured.Unstructured) bool {
				return v.GetResourceVersion() == live.GetResourceVersion()
			}) {
				return fmt.Errorf("%s %s is not in it yet", live.GetKind(), live.GetName())
			}
		}
		stories = nil
		for _, known := range r.objects {
			controller := metav1.GetControllerOf(known.last())
			if controller != nil && controller.UID == owner {
				stories = append(stories, known)
			}
		}
		return nil
	})
	return stories
}

// movements are the recordings that tell which pods a takeover restarts.
type movements struct {
	pods, replicaSets, revisions *recorded
}

func recordMovements(t *testing.T, s *harness.Space) *movements {
	t.Helper()
	apps := harness.FormOf(harness.Backend).Resource.GroupVersion()
	return &movements{
		pods:        record(t, s, schema.GroupVersionResource{Version: "v1", Resource: "pods"}),
		replicaSets: record(t, s, apps.WithResource("replicasets")),
		revisions:   record(t, s, apps.WithResource("controllerrevisions")),
	}
}

// moved is what became of the pods of one MCPServer.
type moved struct {
	// rolls are how many new pod templates each workload has had.
	proxyRolls, backendRolls int
	// made and ended are how many pods came and went.
	proxiesMade, proxiesEnded, backendsMade, backendsEnded int
	// restarts are how often containers were restarted, of those that have ended too.
	proxyRestarts, backendRestarts int64
}

func (m *movements) of(t *testing.T, w *world, server string) (found moved) {
	t.Helper()
	deployment := w.MustObject(t, harness.Proxy, server).GetUID()
	for _, set := range m.replicaSets.of(t, deployment) {
		if !set.there {
			found.proxyRolls++
		}
		made, ended, restarts := count(t, m.pods.of(t, set.last().GetUID()))
		found.proxiesMade, found.proxiesEnded = found.proxiesMade+made, found.proxiesEnded+ended
		found.proxyRestarts += restarts
	}
	statefulSet := w.MustObject(t, harness.Backend, server).GetUID()
	for _, revision := range m.revisions.of(t, statefulSet) {
		if !revision.there {
			found.backendRolls++
		}
	}
	found.backendsMade, found.backendsEnded, found.backendRestarts = count(t, m.pods.of(t, statefulSet))
	return found
}

func count(t *testing.T, pods []*story) (made, ended int, restarts int64) {
	t.Helper()
	for _, pod := range pods {
		if !pod.there {
			made++
		}
		if pod.gone || pod.last().GetDeletionTimestamp() != nil {
			ended++
		}
		restarts += restartsIn(t, pod.last()) - restartsBefore(t, pod)
	}
	return made, ended, restarts
}

// restartsBefore is how often the containers of a pod had been restarted when the recording began.
func restartsBefore(t *testing.T, pod *story) int64 {
	t.Helper()
	if !pod.there {
		return 0
	}
	return restartsIn(t, pod.versions[0])
}

func restartsIn(t *testing.T, pod *unstructured.Unstructured) (restarts int64) {
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
		want.proxyRestarts = m.proxyRestarts
		want.backendRolls, want.backendsMade, want.backendsEnded = 1, backends, backends
	}
	if m != want {
		t.Errorf("the pods had the movements %+v, want %+v", m, want)
	}
}

// sortedKeys are the keys of a map in their order.
func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
