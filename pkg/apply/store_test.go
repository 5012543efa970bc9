// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// store stands in for the API server where claims change hands: it keeps one Deployment, and merges what is applied
// with the API server's own code for managedFields. It does not default or validate.
type store struct {
	t       *testing.T
	applier *apply.Applier
	writer  apply.Writer
	// refuse, if set, is asked before each request; an error is the answer.
	refuse func(request string) error
	// validate, if set, is asked about what an apply would make of the object; an error is the answer.
	validate func(merged *deployment) error
	// admit, if set, changes what an apply or an edit stores, as a mutating admission policy does.
	admit func(merged *deployment)

	clock    *clocktesting.FakePassiveClock
	stored   *deployment // nil for none
	version  int
	requests []string
	// applied are the configurations that came, without preconditions.
	applied []map[string]any
}

// editor is the name under which managedFields are edited here.
const editor = "ownership"

func newStore(t *testing.T, manager fieldmanager.Writer, configure func(*target)) *store {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	s := &store{t: t, applier: apply.NewApplierWithClock(nil, clock), clock: clock, version: 100}
	to := target{
		Apply: s.apply, Extract: appsv1ac.ExtractDeployment, Schema: converter,
		Edits: apply.Edits[*deployment]{
			Manager: editor, Send: s.edit, Clock: clock,
		},
	}
	if configure != nil {
		configure(&to)
	}
	s.writer = newWriter(t, manager, to)
	return s
}

func stamped(to *target) { to.Source = sourceAnnotation }

// live is the object as a cache that is up to date shows it.
func (s *store) live() *deployment { return s.stored.DeepCopy() }

// sync hands an intent to the writer, with the object as it is, as generation 1 of the source.
func (s *store) sync(want *configuration, complete func(*apply.Request)) apply.Outcome {
	s.t.Helper()
	_, ctx := ktesting.NewTestContext(s.t)
	req := apply.Request{Object: webRef, Config: want, Source: apply.Source{UID: sourceUID, Generation: 1}}
	if s.stored != nil {
		req.Live = s.live()
	}
	if complete != nil {
		complete(&req)
	}
	s.comparePlan(ctx, req)
	return do(ctx, s.applier, s.writer, req)
}

// expect fails unless just these requests came since it was asked last.
func (s *store) expect(why string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.requests); diff != "" {
		s.t.Errorf("%s: requests (-want +got):\n%s", why, diff)
	}
	s.requests = nil
}

func (s *store) arrive(request string) error {
	s.requests = append(s.requests, request)
	if s.refuse == nil {
		return nil
	}
	return s.refuse(request)
}

func (s *store) apply(_ context.Context, _ string, config *configuration, options metav1.ApplyOptions) (*deployment, error) {
	if err := s.arrive("apply " + options.FieldManager); err != nil {
		return nil, err
	}
	body, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	if config.Name == nil {
		return nil, errors.New("deployment.Name must be provided to Apply") // So says the typed client, and sends nothing.
	}
	sent := &unstructured.Unstructured{}
	if err := sent.UnmarshalJSON(body); err != nil {
		return nil, err // A body without a kind.
	}
	unguarded := sent.DeepCopy().Object
	unstructured.RemoveNestedField(unguarded, "metadata", "uid")
	unstructured.RemoveNestedField(unguarded, "metadata", "resourceVersion")
	s.applied = append(s.applied, unguarded)
	before := &deployment{}
	if s.stored != nil {
		before = s.live()
	}
	merged, err := s.merger().Apply(before, sent, options.FieldManager, options.Force)
	if err != nil {
		return nil, err
	}
	if version := sent.GetResourceVersion(); s.stored != nil && version != "" && version != s.stored.ResourceVersion {
		return nil, outdated()
	}
	if s.validate != nil {
		if err := s.validate(merged.(*deployment)); err != nil {
			return nil, err
		}
	}
	if s.admit != nil {
		s.admit(merged.(*deployment))
	}
	return s.keep(merged), nil
}

// update writes the object as somebody does who writes it whole.
func (s *store) update(manager string, edit func(*deployment)) {
	s.t.Helper()
	after := s.live()
	edit(after)
	updated, err := s.merger().Update(s.live(), after, manager)
	if err != nil {
		s.t.Fatal(err)
	}
	s.keep(updated)
}

// copied makes the object anew from what is stored, as somebody does who restores a backup.
func (s *store) copied(manager string) {
	s.t.Helper()
	made, err := s.merger().Update(&deployment{}, s.live(), manager)
	if err != nil {
		s.t.Fatal(err)
	}
	s.keep(made)
}

// edit is the reaction to a JSON patch of managedFields.
func (s *store) edit(_ context.Context, in, name string, patch []byte, options metav1.PatchOptions) (*deployment, error) {
	if err := s.arrive("edit " + options.FieldManager); err != nil {
		return nil, err
	}
	if in != namespace || name != "web" {
		s.t.Errorf("the edit is of %s/%s", in, name)
	}
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(patch, &operations); err != nil {
		return nil, err
	}
	after := s.live()
	for _, o := range operations {
		var err error
		switch o.Op + " " + o.Path {
		case "test /metadata/uid":
			if string(o.Value) != strconv.Quote(string(s.stored.UID)) {
				err = answered(s.t, "edit-other-uid")
			}
		case "replace /metadata/resourceVersion":
			if string(o.Value) != strconv.Quote(s.stored.ResourceVersion) {
				err = outdated()
			}
		case "add /metadata/managedFields":
			after.ManagedFields = nil
			err = json.Unmarshal(o.Value, &after.ManagedFields)
		default:
			s.t.Errorf("the edit does more than it should: %s", patch)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(after.ManagedFields) == 1 && after.ManagedFields[0] == (metav1.ManagedFieldsEntry{}) {
		after.ManagedFields = nil
	}
	if s.admit != nil {
		s.admit(after)
	}
	return s.keep(after), nil
}

// keep stores the next version of the object, and returns it as a typed client would.
func (s *store) keep(obj runtime.Object) *deployment {
	next := obj.(*deployment)
	s.version++
	next.TypeMeta, next.UID, next.ResourceVersion = metav1.TypeMeta{}, liveUID, strconv.Itoa(s.version)
	s.stored = next
	return s.live()
}

func (s *store) merger() *managedfields.FieldManager {
	s.t.Helper()
	merger, err := managedfields.NewDefaultFieldManager(converter, scheme.Scheme, withoutDefaults{}, scheme.Scheme,
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion, "", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return merger
}

// withoutDefaults is a runtime.ObjectDefaulter.
type withoutDefaults struct{}

func (withoutDefaults) Default(runtime.Object) {}

func outdated() error {
	return apierrors.NewConflict(deployments, "web", errors.New("the object has been modified"))
}

// owners are the names of those who own a field of the stored object.
func (s *store) owners(path string) []string {
	s.t.Helper()
	var names []string
	for _, o := range ownership.Owners(s.stored, path) {
		names = append(names, o.Manager)
	}
	return names
}

// expectOwners fails unless just these managers own the field.
func (s *store) expectOwners(path string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.owners(path)); diff != "" {
		s.t.Errorf("owners of %s (-want +got):\n%s", path, diff)
	}
}

// image of the stored object.
func (s *store) image() string { return s.stored.Spec.Template.Spec.Containers[0].Image }

// changed are the fields that changed hands, each with the cause and from whom.
func changed(out apply.Outcome) []string {
	var all []string
	for _, change := range out.Claims {
		for _, field := range change.Fields {
			all = append(all, string(change.Cause)+" "+field.Path+" from "+field.From.String())
		}
	}
	return all
}
