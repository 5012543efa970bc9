// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// versions are all that the MCPServers of a namespace have ever been, one after the other.
type versions struct {
	mu sync.Mutex
	of map[string][]*unstructured.Unstructured
	// gone are those that were deleted for good.
	gone map[string]bool
	// err is why no more will come.
	err error
}

// followServers keeps every version of the MCPServers of a namespace from now on, until the test ends.
func followServers(t *testing.T, ns *harness.Namespace) *versions {
	t.Helper()
	list, err := ns.Objects(harness.ServerItself).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	v := &versions{of: map[string][]*unstructured.Unstructured{}, gone: map[string]bool{}}
	harness.Follow(t, list.GetResourceVersion(), ns.Objects(harness.ServerItself).Watch, v.add)
	return v
}

func (v *versions) add(event watch.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	object, ok := event.Object.(*unstructured.Unstructured)
	switch {
	case !ok || event.Type == watch.Error:
		v.err = fmt.Errorf("the watch tells: %v", event.Object)
	case event.Type == watch.Deleted:
		v.gone[object.GetName()] = true
	default:
		v.of[object.GetName()] = append(v.of[object.GetName()], object)
	}
}

// judge waits until all MCPServers are gone, and holds each version that neither the author nor one of the others has
// made against the one before. It returns how many there were.
func (v *versions) judge(t *testing.T, all map[string]*coauthors) (writes int) {
	t.Helper()
	harness.Eventually(t, "the watch has seen the end of all", func(context.Context) error {
		v.mu.Lock()
		defer v.mu.Unlock()
		if len(v.gone) < len(all) {
			return errors.Join(fmt.Errorf("only of %v", v.gone), v.err)
		}
		return nil
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	moved := 0
	for name, c := range all {
		for i, next := range v.of[name] {
			if i == 0 || c.versions[next.GetResourceVersion()] {
				continue
			}
			before := v.of[name][i-1]
			if before.GetDeletionTimestamp() == nil && next.GetDeletionTimestamp() != nil {
				continue // It was asked to be deleted.
			}
			writes++
			for _, wrong := range trespasses(t, before, next) {
				t.Errorf("MCPServer %s, version %s: %s", name, next.GetResourceVersion(), wrong)
			}
			n, wrong := movedTransitions(t, before, next)
			moved += n
			for _, why := range wrong {
				t.Errorf("MCPServer %s, version %s: %s", name, next.GetResourceVersion(), why)
			}
		}
	}
	t.Logf("%d transitions of conditions", moved)
	return writes
}

// trespasses tells what a write of the operator's has changed that is not its to change: a field outside of its claims, or
// the entry of somebody else in managedFields.
func trespasses(t *testing.T, before, after *unstructured.Unstructured) []string {
	t.Helper()
	var wrong []string
	changes, err := typedContent(t, before).Compare(typedContent(t, after))
	if err != nil {
		t.Fatal(err)
	}
	changed := changes.Added.Union(changes.Removed).Union(changes.Modified)
	if changed.Empty() {
		wrong = append(wrong, "nothing has changed")
	}
	var outside [][]string
	for _, key := range []struct{ manager, subresource string }{{managers.Finalizer, ""}, {managers.Status, "status"}} {
		writer, ok := managers.Registry().Writer(key.manager, managers.MCPServer, key.subresource)
		if !ok {
			t.Fatalf("%s is not registered", key.manager)
		}
		var paths []string
		for _, path := range writer.Claim.Outside(changed) {
			paths = append(paths, path.String())
		}
		outside = append(outside, paths)
	}
	for _, path := range outside[0] {
		if slices.Contains(outside[1], path) {
			wrong = append(wrong, path+" is changed, which is claimed by no writer")
		}
	}
	if diff := cmp.Diff(foreignEntries(t, before), foreignEntries(t, after)); diff != "" {
		wrong = append(wrong, "entries of others have changed (-before +after):\n"+diff)
	}
	return wrong
}

// typedContent is an object whose fields can be compared one by one, without what changes with every write.
func typedContent(t *testing.T, object *unstructured.Unstructured) *typed.TypedValue {
	t.Helper()
	object = object.DeepCopy()
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(object.Object, "metadata", "resourceVersion")
	content, err := harness.SchemaOf(managers.MCPServer).ObjectToTyped(object)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// foreignEntries are those in managedFields that are not of the operator's writers, with their times.
func foreignEntries(t *testing.T, object *unstructured.Unstructured) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == managers.Finalizer || entry.Manager == managers.Status {
			continue
		}
		text, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		found[fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation, entry.Subresource)] = string(text)
	}
	return found
}

// movedTransitions counts the conditions whose time of transition a write of the operator's has changed, and tells where
// that does not go with their status.
func movedTransitions(t *testing.T, before, after *unstructured.Unstructured) (moved int, wrong []string) {
	t.Helper()
	old, next := versionConditions(t, before), versionConditions(t, after)
	for _, now := range next {
		was := meta.FindStatusCondition(old, now.Type)
		if was == nil {
			continue
		}
		same := was.LastTransitionTime.Equal(&now.LastTransitionTime)
		if !same {
			moved++
		}
		// A status may change more than once in a second, and times have no more than seconds.
		if !same && was.Status == now.Status || now.LastTransitionTime.Before(&was.LastTransitionTime) {
			wrong = append(wrong, fmt.Sprintf("condition %+v was %+v", now, *was))
		}
	}
	return moved, wrong
}

func versionConditions(t *testing.T, object *unstructured.Unstructured) []metav1.Condition {
	t.Helper()
	server := &v1beta1.MCPServer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, server); err != nil {
		t.Fatal(err)
	}
	return server.Status.Conditions
}
