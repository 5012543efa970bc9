// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	toolswatch "k8s.io/client-go/tools/watch"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// revision is a resourceVersion. Those of all objects come from one sequence here, as one etcd has them all: what has a
// greater one was written later.
type revision uint64

func revisionOf(t *testing.T, object metav1.Object) revision {
	t.Helper()
	number, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatalf("the resourceVersion of %s is no number: %v", object.GetName(), err)
	}
	return revision(number)
}

// version is an object as it was from a revision on.
type version struct {
	*unstructured.Unstructured
	revision revision
	// deleted tells that the object was gone then.
	deleted bool
}

// history has every version of the objects of a kind in a namespace, from its start on. It is watched, so that no
// version is missing, however short it lasted.
type history struct {
	objects dynamic.ResourceInterface

	mu       sync.Mutex
	versions []version
	err      error
}

// record starts a history. It ends with the test.
func record(t *testing.T, s *harness.Space, resource schema.GroupVersionResource) *history {
	t.Helper()
	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	h := &history{objects: client.Resource(resource).Namespace(s.Name)}
	list, err := h.objects.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		h.versions = append(h.versions, version{&list.Items[i], revisionOf(t, &list.Items[i]), false})
	}
	watcher, err := toolswatch.NewRetryWatcherWithContext(t.Context(), list.GetResourceVersion(), h)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for event := range watcher.ResultChan() {
			h.add(t, event)
		}
	})
	t.Cleanup(func() {
		watcher.Stop()
		done.Wait()
	})
	return h
}

// WatchWithContext implements cache.WatcherWithContext.
func (h *history) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return h.objects.Watch(ctx, options)
}

func (h *history) add(t *testing.T, event watch.Event) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Error || event.Type == watch.Bookmark {
		// What comes after an error has a gap before it.
		h.err = fmt.Errorf("the watch was interrupted: %s %+v", event.Type, event.Object)
		return
	}
	number, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		h.err = err
		return
	}
	h.versions = append(h.versions, version{object, revision(number), event.Type == watch.Deleted})
}

// complete returns all versions up to now, once those that the API server has now are among them.
func (h *history) complete(t *testing.T) []version {
	t.Helper()
	list, err := h.objects.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var versions []version
	harness.Eventually(t, "the history is complete", func(context.Context) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.err != nil {
			t.Fatal(h.err)
		}
		seen := map[string]bool{}
		for _, v := range h.versions {
			seen[string(v.GetUID())+"@"+v.GetResourceVersion()] = true
		}
		for i := range list.Items {
			if live := &list.Items[i]; !seen[string(live.GetUID())+"@"+live.GetResourceVersion()] {
				return fmt.Errorf("%s %s is not in it yet", live.GetKind(), live.GetName())
			}
		}
		versions = append([]version(nil), h.versions...)
		return nil
	})
	return versions
}

// of returns the versions of the object with a name.
func of(name string, versions []version) []version {
	var found []version
	for _, v := range versions {
		if v.GetName() == name {
			found = append(found, v)
		}
	}
	return found
}

// strangers returns who has fields of a part of an MCPServer that is not Freehold, nor the controller that writes the
// status of StatefulSets.
func strangers(v version, server *v1beta1.MCPServer, part harness.Part) []string {
	known := map[string]bool{}
	for _, manager := range harness.Managers(server, part) {
		known[manager+" Apply"] = true
	}
	if part == harness.Backend {
		known["kube-controller-manager/status Update"] = true
	}
	var found []string
	for _, entry := range v.GetManagedFields() {
		manager := entry.Manager
		if entry.Subresource != "" {
			manager += "/" + entry.Subresource
		}
		if manager += " " + string(entry.Operation); !known[manager] {
			found = append(found, manager)
		}
	}
	return found
}

// backendHistory is what became of the backends of a namespace.
type backendHistory map[harness.Part]*history

// recordBackend starts the histories of all that a proxyrunner of ToolHive's own operator writes.
func recordBackend(t *testing.T, s *harness.Space) backendHistory {
	t.Helper()
	services := record(t, s, harness.FormOf(harness.BackendService).Resource)
	return backendHistory{
		harness.Backend:         record(t, s, harness.FormOf(harness.Backend).Resource),
		harness.BackendService:  services,
		harness.HeadlessService: services,
	}
}

// checkOwners checks that no version of any object of an MCPServer's backend had an owner beside Freehold, and that none
// was deleted. It returns how many versions there are.
func (b backendHistory) checkOwners(t *testing.T, server *v1beta1.MCPServer) (count int) {
	t.Helper()
	for _, part := range harness.PartsOf(server) {
		if b[part] == nil {
			continue
		}
		versions := of(harness.FormOf(part).Name(server.Name), b[part].complete(t))
		if len(versions) == 0 {
			t.Errorf("%s has no version", part)
		}
		for _, v := range versions {
			if who := strangers(v, server, part); len(who) > 0 {
				t.Errorf("%s, version %d: %v own fields of it", part, v.revision, who)
			}
			if v.deleted {
				t.Errorf("%s was deleted at %d", part, v.revision)
			}
		}
		count += len(versions)
	}
	return count
}

// backendImage returns the image of the MCP server in a version of a StatefulSet.
func backendImage(t *testing.T, v version) string {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(v.Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range containers {
		if fields, ok := c.(map[string]any); ok && fields["name"] == "mcp" {
			image, _ := fields["image"].(string)
			return image
		}
	}
	t.Fatalf("StatefulSet %s, version %d, has no container mcp", v.GetName(), v.revision)
	return ""
}
