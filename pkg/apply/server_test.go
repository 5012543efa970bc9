// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

type (
	deployment    = appsv1.Deployment
	configuration = appsv1ac.DeploymentApplyConfiguration
	target        = apply.Target[*deployment, *configuration]
)

// sourceAnnotation is the key under which the targets of these tests record the source.
const sourceAnnotation = "example.com/source"

const (
	namespace = "shop"
	liveUID   = types.UID("11111111-1111-1111-1111-111111111111")
	sourceUID = types.UID("22222222-2222-2222-2222-222222222222")
)

var (
	deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	webRef         = apply.NewObjectRef(deploymentKind, namespace, "web")
	content        = fieldmanager.Writer{Name: "content", Kind: deploymentKind, Claim: fieldmanager.Claim{
		Within: []fieldpath.Path{fieldmanager.Path("metadata"), fieldmanager.Path("spec")},
		Except: []fieldpath.Path{fieldmanager.Path("spec", "replicas")},
	}}
	replicas = fieldmanager.Writer{Name: "replicas", Kind: deploymentKind, Claim: fieldmanager.Claim{
		Within: []fieldpath.Path{fieldmanager.Path("spec", "replicas")},
	}}
	status = fieldmanager.Writer{Name: "status", Kind: deploymentKind, Subresource: "status", Claim: fieldmanager.Claim{
		Within: []fieldpath.Path{fieldmanager.Path("status")},
	}}
)

func registry() *fieldmanager.Registry {
	r := &fieldmanager.Registry{}
	r.MustRegister(content, replicas, status)
	return r
}

// web is an intent of the content writer.
func web(image string) *configuration {
	return appsv1ac.Deployment("web", namespace).
		WithLabels(map[string]string{"app": "web"}).
		WithSpec(appsv1ac.DeploymentSpec().
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"app": "web"})).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(map[string]string{"app": "web"}).
				WithSpec(corev1ac.PodSpec().WithContainers(corev1ac.Container().WithName("web").WithImage(image)))))
}

// server stands in for the API server. It keeps no objects: its answer to an apply is the object that one sees
// after a first apply, with the managedFields entry that it causes.
type server struct {
	t *testing.T
	// refuse is the answer, if set.
	refuse error
	// before, if set, is called before each answer.
	before func()

	mu       sync.Mutex
	calls    []call
	extracts int
	version  int
}

// call is one request that reached the server.
type call struct {
	namespace string
	manager   string
	body      []byte
}

func newServer(t *testing.T) *server {
	t.Helper()
	return &server{t: t, version: 100}
}

// target sends to the server.
func (s *server) target() target {
	return target{
		Apply: s.apply,
		Extract: func(live *deployment, manager string) (*configuration, error) {
			s.mu.Lock()
			s.extracts++
			s.mu.Unlock()
			return appsv1ac.ExtractDeployment(live, manager)
		},
		Schema: converter,
	}
}

// stamping is a target with the source on the object.
func (s *server) stamping() target {
	to := s.target()
	to.Source = sourceAnnotation
	return to
}

func (s *server) apply(_ context.Context, namespace string, config *configuration, options metav1.ApplyOptions) (*deployment, error) {
	body, err := json.Marshal(config)
	if err != nil {
		s.t.Errorf("the body cannot be encoded: %v", err)
	}
	// No apply is forced.
	if diff := cmp.Diff(metav1.ApplyOptions{FieldManager: options.FieldManager}, options); diff != "" {
		s.t.Errorf("the apply has more options than its manager (-want +got):\n%s", diff)
	}
	if s.before != nil {
		s.before()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call{namespace: namespace, manager: options.FieldManager, body: body})
	if s.refuse != nil {
		return nil, s.refuse
	}
	s.version++
	answer := after(s.t, options.FieldManager, config)
	answer.ResourceVersion = strconv.Itoa(s.version)
	return answer, nil
}

// sent returns how many requests reached the server since it was asked last.
func (s *server) sent() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// expect fails unless just that many requests reached the server since it was asked last.
func (s *server) expect(count int, why string) []call {
	s.t.Helper()
	calls := s.sent()
	if len(calls) != count {
		s.t.Fatalf("%s: %d requests were sent, want %d", why, len(calls), count)
	}
	return calls
}

var converter = applyconfigurations.NewTypeConverter(scheme.Scheme)

// after is a Deployment after one manager's apply.
func after(t *testing.T, manager string, config *configuration) *deployment {
	t.Helper()
	body, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	live, sent := &deployment{}, &unstructured.Unstructured{}
	if err := json.Unmarshal(body, live); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, sent); err != nil {
		t.Fatal(err)
	}
	if live.UID == "" {
		live.UID = liveUID
	}
	live.ResourceVersion, live.Generation = "7", 1
	live.ManagedFields = []metav1.ManagedFieldsEntry{entry(t, manager, sent)}
	return live
}

// entry is what a manager owns after it applied a body.
func entry(t *testing.T, manager string, sent *unstructured.Unstructured) metav1.ManagedFieldsEntry {
	t.Helper()
	for _, unowned := range []string{"name", "namespace", "uid", "resourceVersion"} {
		unstructured.RemoveNestedField(sent.Object, "metadata", unowned)
	}
	typed, err := converter.ObjectToTyped(sent)
	if err != nil {
		t.Fatal(err)
	}
	set, err := typed.ToFieldSet()
	if err != nil {
		t.Fatal(err)
	}
	set = set.Difference(fieldpath.NewSet(fieldmanager.Path("apiVersion"), fieldmanager.Path("kind")))
	fields, err := set.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(fields)),
		Time: &metav1.Time{Time: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)},
	}
}

// foreign adds the entry of another manager.
func foreign(live *deployment, manager, fields string) *deployment {
	live.ManagedFields = append(live.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	})
	return live
}

// bench is an applier with one writer, and the server that it sends to.
type bench struct {
	*server
	applier *apply.Applier
	writer  apply.Writer
	clock   *clocktesting.FakePassiveClock
}

func newBench(t *testing.T, manager fieldmanager.Writer, build func(*server) target) *bench {
	t.Helper()
	s := newServer(t)
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	return &bench{server: s, applier: apply.NewApplierWithClock(nil, clock), writer: newWriter(t, manager, build(s)), clock: clock}
}

func newWriter(t *testing.T, manager fieldmanager.Writer, to target) apply.Writer {
	t.Helper()
	w, err := apply.NewWriter(registry(), manager, to)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// pass lets time pass.
func (b *bench) pass(time time.Duration) { b.clock.SetTime(b.clock.Now().Add(time)) }

// sync hands an intent to the writer. The live object may be nil; it must come out as it went in.
func (b *bench) sync(live *deployment, want *configuration, generation int64) apply.Outcome {
	b.t.Helper()
	_, ctx := ktesting.NewTestContext(b.t)
	request := apply.Request{Object: webRef, Config: want, Source: apply.Source{UID: sourceUID, Generation: generation}}
	if live == nil {
		return do(ctx, b.applier, b.writer, request)
	}
	before := live.DeepCopy()
	request.Live = live
	out := do(ctx, b.applier, b.writer, request)
	if diff := cmp.Diff(before, live); diff != "" {
		b.t.Errorf("the cached object was modified (-before +after):\n%s", diff)
	}
	return out
}

// settled fails unless the outcome is a success, and returns the object as it is then.
func (b *bench) settled(out apply.Outcome, action apply.Action) *deployment {
	b.t.Helper()
	if out.Err != nil {
		b.t.Fatalf("refused: %v", out.Err)
	}
	if out.Action != action {
		b.t.Fatalf("action %s, want %s", out.Action, action)
	}
	return out.Live.(*deployment)
}
