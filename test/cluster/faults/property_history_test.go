// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

// recordedKinds are components of which each is of another kind, and together of all.
var recordedKinds = []harness.Component{
	harness.ServerItself, harness.ProxyAccount, harness.ProxyRole, harness.ProxyBinding, harness.RunConfig,
	harness.ProxyService, harness.Backend, harness.Proxy,
}

// objectHistory is every version of every object of a namespace, by resource and name, in the order of their writing.
type objectHistory struct {
	mu       sync.Mutex
	versions map[string][]*unstructured.Unstructured
	broken   error
}

// recordHistory begins a history of the namespace. It goes on until the test ends.
func recordHistory(t *testing.T, ns *harness.Namespace) *objectHistory {
	t.Helper()
	h := &objectHistory{versions: map[string][]*unstructured.Unstructured{}}
	for _, component := range recordedKinds {
		list, err := ns.Objects(component).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		resource := harness.FormOf(component).Resource.GroupResource()
		harness.Follow(t, list.GetResourceVersion(), ns.Objects(component).Watch, func(event watch.Event) { h.add(event, resource) })
	}
	return h
}

func (h *objectHistory) add(event watch.Event, resource schema.GroupResource) {
	h.mu.Lock()
	defer h.mu.Unlock()
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Error {
		h.broken = fmt.Errorf("the watch of %s has ended: %v", resource, event.Object)
	} else if event.Type != watch.Deleted {
		key := resource.String() + "/" + object.GetName()
		h.versions[key] = append(h.versions[key], object)
	}
}

func (h *objectHistory) of(resource schema.GroupResource, name string) ([]*unstructured.Unstructured, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.versions[resource.String()+"/"+name], h.broken
}

// awaitPresent waits until the history of a scenario's objects goes up to what they are now.
func (h *objectHistory) awaitPresent(ctx context.Context, s *scenario) error {
	objects, err := s.ns.ObjectsOf(ctx, s.name)
	if err != nil {
		return err
	}
	for component, object := range objects {
		for began := time.Now(); ; {
			versions, err := h.of(harness.FormOf(component).Resource.GroupResource(), object.GetName())
			if err != nil {
				return err
			}
			if slices.ContainsFunc(versions, func(v *unstructured.Unstructured) bool {
				return v.GetResourceVersion() == object.GetResourceVersion()
			}) {
				break
			}
			if harness.AtPace(began, time.Since(began)) > scenarioPatience || ctx.Err() != nil {
				return fmt.Errorf("the watch does not show version %s of %s %s", object.GetResourceVersion(), component, object.GetName())
			}
			lapse(ctx, harness.Poll)
		}
	}
	return nil
}

// lapse lets a time pass, or the context end.
func lapse(ctx context.Context, duration time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	<-ctx.Done()
}

// check tells what is wrong with a write of the operator. It finds the version that the write was made for, and the one
// that came out of it.
//
// An apply changes only fields that its manager owned before or owns now, and none that another manager owned. What the
// API server fills in beside them, or takes away with them, was nobody's. An edit of managedFields changes no value. It
// takes a field from another manager only when the author has asked for that, or where there may be one pod only.
func (h *objectHistory) check(e *audit.Event, s *scenario) []string {
	if !e.Succeeded() || e.Verb != "patch" || e.Resource == "events" {
		return nil
	}
	versions, err := h.of(schema.GroupResource{Group: e.Group, Resource: e.Resource}, e.Name)
	if err != nil {
		return []string{err.Error()}
	}
	made := madeFor(e)
	at := slices.IndexFunc(versions, func(v *unstructured.Unstructured) bool { return v.GetResourceVersion() == made })
	if at < 0 || at+1 >= len(versions) || versions[at].GetUID() != versions[at+1].GetUID() {
		return nil // It has made the object, or changed nothing.
	}
	before, after := versions[at], versions[at+1]
	changed, err := versionChanges(before, after)
	if err != nil {
		return []string{err.Error()}
	}
	if e.FieldManager == managers.Ownership {
		var wrong []string
		for path := range touched(changed).All() {
			wrong = append(wrong, fmt.Sprintf("an edit of managedFields changes %s", path))
		}
		return append(wrong, s.unjustified(before, after)...)
	}
	return overreach(e.FieldManager, before, after, changed)
}

// overreach tells which of the changes a manager should not have made. The API server may list an owner of a field that
// is not there: that of what it has taken away itself, such as the configuration of an affinity that is none any more.
func overreach(manager string, before, after *unstructured.Unstructured, changed *typed.Comparison) []string {
	own, others := heldBy(before, manager)
	now, _ := heldBy(after, manager)
	own = own.Union(now)
	var wrong []string
	for path := range touched(changed).All() {
		switch {
		case others.Has(path) && !changed.Added.Has(path):
			wrong = append(wrong, fmt.Sprintf("%s changes %s, which belongs to %v", manager, path, ownership.Owners(before, path.String())))
		case !own.Has(path) && !filledIn(changed, path):
			wrong = append(wrong, fmt.Sprintf("%s changes %s, which it does not own", manager, path))
		}
	}
	return wrong
}

// filledIn tells whether a field may have come by a default of the API server, or gone with what it was the default for.
func filledIn(changed *typed.Comparison, path fieldpath.Path) bool {
	return *path[0].FieldName == "spec" && !changed.Modified.Has(path)
}

// heldBy returns what a manager owns of an object, and what others do.
func heldBy(object *unstructured.Unstructured, manager string) (own, others *fieldpath.Set) {
	own, others = &fieldpath.Set{}, &fieldpath.Set{}
	for _, entry := range object.GetManagedFields() {
		fields, err := ownership.Fields(&entry)
		switch {
		case err != nil:
		case entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply:
			own = own.Union(fields)
		default:
			others = others.Union(fields)
		}
	}
	return own, others
}

// unjustified tells which fields were taken from others without a cause.
func (s *scenario) unjustified(before, after *unstructured.Unstructured) []string {
	var wrong []string
	for _, entry := range before.GetManagedFields() {
		if strings.HasPrefix(entry.Manager, "freehold-") {
			continue
		}
		had, err := ownership.Fields(&entry)
		if err != nil {
			return []string{err.Error()}
		}
		if had.Has(sourceMark) || had.Has(replicasMark) {
			continue // It owns a copy: nobody else writes these.
		}
		for path := range had.All() {
			still := slices.ContainsFunc(ownership.Owners(after, path.String()), func(o ownership.Owner) bool {
				return o.Manager == entry.Manager && o.Operation == entry.Operation && o.Subresource == entry.Subresource
			})
			if !still && !s.mayTake(before, entry.Manager, path) {
				wrong = append(wrong, fmt.Sprintf("%s is taken from %s, and nobody has asked for that", path, entry.Manager))
			}
		}
	}
	return wrong
}

// sourceMark and replicasMark are the fields that only Freehold writes, by which it knows what it has lost.
var (
	sourceMark   = fieldmanager.Path("metadata", "annotations", v1beta1.AnnotationSource)
	replicasMark = fieldmanager.Path("metadata", "annotations", v1beta1.AnnotationReplicasSource)
)

// mayTake tells whether a field may be taken: because the author asked for it, by the field or by the manager, or
// because the number of pods of a server with transport stdio is too big.
func (s *scenario) mayTake(object *unstructured.Unstructured, manager string, path fieldpath.Path) bool {
	for _, asked := range s.takes {
		if asked == manager || strings.HasSuffix(asked, "/"+object.GetName()+":"+path.String()) {
			return true
		}
	}
	number, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return path.String() == ".spec.replicas" && number > 1 && s.wasStdio()
}

// wasStdio tells whether the MCPServer has had transport stdio at some time.
func (s *scenario) wasStdio() bool {
	versions, _ := s.history.of(harness.FormOf(harness.ServerItself).Resource.GroupResource(), s.name)
	return slices.ContainsFunc(versions, func(v *unstructured.Unstructured) bool {
		transport, _, _ := unstructured.NestedString(v.Object, "spec", "transport")
		return transport == string(v1beta1.TransportStdio)
	})
}

// versionChanges are how two versions differ, but for what the API server keeps for itself.
func versionChanges(before, after *unstructured.Unstructured) (*typed.Comparison, error) {
	left, err := harness.TypedOf(before)
	if err != nil {
		return nil, err
	}
	right, err := harness.TypedOf(after)
	if err != nil {
		return nil, err
	}
	return left.Compare(right)
}

// touched are the fields of a difference that have nothing below them.
func touched(difference *typed.Comparison) *fieldpath.Set {
	return difference.Added.Union(difference.Modified).Union(difference.Removed).Leaves()
}

// madeFor is the resourceVersion that a write was made for.
func madeFor(e *audit.Event) string {
	var config struct {
		Metadata struct{ ResourceVersion string }
	}
	if json.Unmarshal(e.Body, &config) == nil {
		return config.Metadata.ResourceVersion
	}
	var operations []struct {
		Path  string
		Value any
	}
	if json.Unmarshal(e.Body, &operations) == nil {
		for _, o := range operations {
			if version, ok := o.Value.(string); ok && o.Path == "/metadata/resourceVersion" {
				return version
			}
		}
	}
	return ""
}
