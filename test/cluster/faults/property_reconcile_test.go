// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

// reconcile makes all others give up what they claim, and the author ask for nothing special any more. All must then be
// as with a new MCPServer of the same spec, values and owners, but for what harness.Neutral leaves out.
func (s *scenario) reconcile(ctx context.Context) error {
	if err := s.edit(ctx, func(server *v1beta1.MCPServer) {
		delete(server.Annotations, v1beta1.AnnotationYield)
		delete(server.Annotations, v1beta1.AnnotationTake)
	}); err != nil {
		return err
	}
	objects, err := s.ns.ObjectsOf(ctx, s.name)
	if err != nil {
		return err
	}
	steps := 1
	for component, object := range objects {
		if component == harness.ServerItself {
			continue
		}
		given, err := s.giveUp(ctx, component, object)
		if err != nil {
			return fmt.Errorf("%s: %w", component, err)
		}
		steps += given
	}
	if err := s.rest(ctx, steps); err != nil {
		return err
	}
	server, err := s.ns.Servers.Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	fresh := &scenario{ns: s.ns, history: s.history, name: strings.Replace(s.name, "first", "fresh", 1), begun: s.begun}
	_, err = s.ns.Servers.Create(ctx, &v1beta1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: fresh.name}, Spec: server.Spec,
	}, metav1.CreateOptions{FieldManager: harness.Author})
	if err != nil {
		return err
	}
	if err := fresh.rest(ctx, 1); err != nil {
		return fmt.Errorf("the new one: %w", err)
	}
	if err := s.compare(ctx, fresh, server); err != nil {
		return err
	}
	return s.ns.Servers.Delete(ctx, fresh.name, metav1.DeleteOptions{})
}

// giveUp takes back what others did to an object. What they applied they give up by an empty apply, where the API server
// lets them: a container must have an image. Fields of their own go otherwise, and last their claims, without the values:
// these are the operator's to put right. It returns how many writes that took. An object that the operator deletes meanwhile,
// because nothing keeps it from it any more, has nothing left to give up: a Service that only the proxy before a change of
// transport used goes when the claims that held up the new one have gone.
func (s *scenario) giveUp(ctx context.Context, component harness.Component, object *unstructured.Unstructured) (writes int, err error) {
	for _, by := range scenarioAppliers {
		if ownership.ApplyEntry(object, by, "") == nil {
			continue
		}
		writes++
		if _, err := s.ns.Apply(ctx, by, component, s.name, false, nil); err != nil && !apierrors.IsInvalid(err) {
			return writes, err
		}
	}
	for {
		object, err := s.ns.Object(ctx, component, s.name)
		if apierrors.IsNotFound(err) {
			return writes, nil
		}
		if err != nil {
			return writes, err
		}
		operations := foreignFields(component, object)
		kept := slices.DeleteFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return !belongs(component, &e) })
		if len(operations) == 0 && len(kept) == len(object.GetManagedFields()) {
			return writes, nil
		}
		if len(operations) == 0 {
			operations = append(operations, harness.Replace("/metadata/managedFields", kept))
		}
		operations = append(operations, harness.Replace("/metadata/resourceVersion", object.GetResourceVersion()))
		writes++
		if _, err := s.ns.Patch(ctx, harness.Hand, component, s.name, operations...); err != nil &&
			!apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return writes, err
		}
	}
}

// foreignFields are the operations that take away the first field of an object that Freehold does not set.
func foreignFields(component harness.Component, object *unstructured.Unstructured) []harness.Operation {
	for _, field := range scenarioFields {
		if !field.foreign || field.component != component {
			continue
		}
		path := field.path
		if last := path[len(path)-2]; last.Key != nil {
			path = path[:len(path)-1] // An item of a list goes as a whole.
		}
		if at, found := locateField(object.Object, path); found {
			return []harness.Operation{harness.Remove(at.pointer)}
		}
	}
	return nil
}

// belongs tells whether an entry is Freehold's or the control plane's.
func belongs(component harness.Component, entry *metav1.ManagedFieldsEntry) bool {
	return strings.HasPrefix(entry.Manager, "freehold-") || harness.IsSystem(component, entry)
}

// compare compares the MCPServer at the end of the scenario with a new one.
func (s *scenario) compare(ctx context.Context, fresh *scenario, server *v1beta1.MCPServer) error {
	var errs []error
	objects, err := s.ns.ObjectsOf(ctx, s.name)
	if err != nil {
		return err
	}
	newObjects, err := s.ns.ObjectsOf(ctx, fresh.name)
	if err != nil {
		return err
	}
	for _, component := range append(harness.ComponentsOf(server), harness.HeadlessService, harness.BackendService) {
		left, err := harness.Neutral(server, component, objects)
		if err != nil {
			return err
		}
		right, err := harness.Neutral(server, component, newObjects)
		if err != nil {
			return err
		}
		if diff := gocmp.Diff(right, left); diff != "" {
			errs = append(errs, fmt.Errorf("the %s is not as a new one (-new +left):\n%s", component, diff))
		}
	}
	return errors.Join(errs...)
}
