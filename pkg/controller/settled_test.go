// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
)

// passInput is what inputHash tells apart.
type passInput struct {
	server  *v1beta1.MCPServer
	authz   *corev1.ConfigMap
	process string
	proxy   *appsv1.Deployment
	backend *appsv1.StatefulSet
	service *corev1.Service
	config  *corev1.ConfigMap
}

func newPassInput() *passInput {
	server := newServer("web")
	server.Annotations = map[string]string{"x": ""}
	ours := []metav1.ManagedFieldsEntry{{
		Manager: managers.Proxy, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + v1beta1.AnnotationSource + `":{}}}}`),
	}}
	s := &passInput{
		server: server, process: "pod/1", proxy: webProxy(server), backend: webBackend(server),
		service: childOf(server, "mcp-web-proxy", &corev1.Service{}), config: childOf(server, inventory.RunConfig.ContentName("web", nil), &corev1.ConfigMap{}),
		authz: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "policies", UID: "p", ResourceVersion: "1"}},
	}
	for _, object := range []metav1.Object{s.proxy, s.backend, s.service, s.config} {
		object.SetManagedFields(ours)
		object.SetResourceVersion("1")
	}
	s.proxy.Generation, s.backend.Generation = 1, 1
	return s
}

func (s *passInput) number() uint64 {
	v := sees(s.server)
	reducer := &observed.Reducer{Applier: apply.NewApplier(nil)}
	add := func(child *inventory.Child, name string, object metav1.Object) {
		ref := apply.NewObjectRef(child.Kind, s.server.Namespace, name)
		v.Children[ref] = reducer.Reduce(ref, object, nil)
	}
	if s.proxy != nil {
		add(inventory.Proxy, s.proxy.Name, s.proxy)
	}
	if s.backend != nil {
		add(inventory.Backend, s.backend.Name, s.backend)
	}
	if s.service != nil {
		add(inventory.ProxyService, s.service.Name, s.service)
	}
	if s.config != nil {
		add(inventory.RunConfig, s.config.Name, s.config)
	}
	return inputHash(v, render.Input{
		Server: s.server, AuthzConfigMap: s.authz, BackendProcess: s.process,
	})
}

func TestTheHashOfAnInputTellsWhatDecidesAboutWrites(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(s *passInput)
		same bool
	}{
		"nothing":                   {func(*passInput) {}, true},
		"status of the MCPServer":   {func(s *passInput) { s.server.Status.Message, s.server.ResourceVersion = "new", "9" }, true},
		"status of the Deployment":  {func(s *passInput) { s.proxy.Status.ReadyReplicas, s.proxy.ResourceVersion = 7, "9" }, true},
		"progress of a StatefulSet": {func(s *passInput) { s.backend.Status.UpdatedReplicas, s.backend.ResourceVersion = 7, "9" }, true},

		"the backend no longer serves": {func(s *passInput) { s.backend.Status.ReadyReplicas = 0 }, false},
		"another MCPServer":            {func(s *passInput) { s.server.UID = "another" }, false},
		"another spec":                 {func(s *passInput) { s.server.Generation++ }, false},
		"a label of the MCPServer":     {func(s *passInput) { s.server.Labels = map[string]string{"a": "b"} }, false},
		"an annotation":                {func(s *passInput) { s.server.Annotations = map[string]string{"a": "b"} }, false},
		"a label that is one no more":  {func(s *passInput) { s.server.Annotations, s.server.Labels = nil, map[string]string{"x": ""} }, false},
		"another policy":               {func(s *passInput) { s.authz.ResourceVersion = "2" }, false},
		"a policy made anew":           {func(s *passInput) { s.authz.UID = "r" }, false},
		"no policy":                    {func(s *passInput) { s.authz = nil }, false},
		"another process":              {func(s *passInput) { s.process = "pod/2" }, false},
		"no Deployment":                {func(s *passInput) { s.proxy = nil }, false},
		"no StatefulSet":               {func(s *passInput) { s.backend = nil }, false},
		"no Service":                   {func(s *passInput) { s.service = nil }, false},
		"no RunConfig":                 {func(s *passInput) { s.config = nil }, false},
		"a Deployment made anew":       {func(s *passInput) { s.proxy.UID = "anew" }, false},
		"another field manager": {func(s *passInput) {
			theirs := s.proxy.ManagedFields[0]
			theirs.Manager = "kubectl"
			s.proxy.ManagedFields = append(s.proxy.ManagedFields[:1:1], theirs)
		}, false},
		"an edit of the Deployment":  {func(s *passInput) { s.proxy.Generation++ }, false},
		"an edit of the Service":     {func(s *passInput) { s.service.ResourceVersion = "2" }, false},
		"an edit of the RunConfig":   {func(s *passInput) { s.config.ResourceVersion = "2" }, false},
		"a RunConfig of other data":  {func(s *passInput) { s.config.Data = map[string]string{"x": "y"} }, false},
		"another owner":              {func(s *passInput) { s.proxy.OwnerReferences = nil }, false},
		"another source":             {func(s *passInput) { s.proxy.Annotations[v1beta1.AnnotationSource] = "forged" }, false},
		"a Deployment being deleted": {func(s *passInput) { s.proxy.DeletionTimestamp = &metav1.Time{Time: bubbleStart} }, false},
		"a Service being deleted":    {func(s *passInput) { s.service.DeletionTimestamp = &metav1.Time{Time: bubbleStart} }, false},
		"no managedFields":           {func(s *passInput) { s.backend.ManagedFields = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPassInput()
			before := s.number()
			test.edit(s)
			if same := s.number() == before; same != test.same {
				t.Errorf("same input: %t, want %t", same, test.same)
			}
		})
	}
}

// A pass after which nothing is left to do is remembered, and one that leaves something is not: it has to come back to it.
func TestRestIsRememberedWhenNothingIsLeft(t *testing.T) {
	for name, test := range map[string]struct {
		annotation, value string
		refuse, seize     bool
		settled           bool
	}{
		"calm":               {settled: true},
		"a conflict":         {seize: true, settled: true},
		"a refused write":    {refuse: true},
		"a request to take":  {annotation: v1beta1.AnnotationTake, value: "helm"},
		"a request to yield": {annotation: v1beta1.AnnotationYield, value: ".spec.replicas"},
		"a plain annotation": {annotation: "example.com/a", value: "b", settled: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			if test.annotation != "" {
				server.Annotations = map[string]string{test.annotation: test.value}
			}
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t, server)
				s.before.set(func(w write) error {
					if test.refuse && w.kind == "Service" {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, w.name, errors.New("a policy says no"))
					}
					return nil
				})
				o := start(t, s, nil)
				defer o.end()
				o.rest()
				if !test.refuse {
					o.becomeReady("web")
				}
				if test.seize {
					seize(t, o, "evil")
					o.rest()
				}
				if settled := o.states.get(key("web")).settled != nil; settled != test.settled {
					t.Errorf("remembered: %t, want %t", settled, test.settled)
				}
			})
		})
	}
}

// A read that shows the backend ready, which the cache did not show when the pass began, does not make the proxy wait for ever.
func TestABackendThatGetsReadyDuringAPassIsNotMissed(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.arriving.set(func(r *apiserver.Request) error {
			if r.Verb == "get" && r.Kind.Resource == "statefulsets" {
				if set, _ := get[*appsv1.StatefulSet](o.apiServer, "web"); set.Status.ReadyReplicas == 0 {
					backendReady(o.apiServer, "web")
				}
			}
			return nil
		})
		restore[*appsv1.StatefulSet](o, "web") // It is read to get its managedFields back.
		o.rest()
		if !exists[*appsv1.Deployment](o.apiServer, "web") {
			t.Error("the proxy is not made although the backend is ready")
		}
	})
}

// The ConfigMap of an earlier revision stays for a rollback. That is no reason to plan each child again at every event: only what is
// unwanted is looked at, and goes once nothing uses it.
func TestRestIsRememberedAfterAnEdit(t *testing.T) {
	server := newServer("web")
	policy("permit")(server)
	operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
		o.serveFirstRevision()
		before := o.states.get(key("web")).settled
		change(o.apiServer, "web", policy("forbid"))
		o.rest()
		o.roll("2")
		remove[*corev1.Pod](o.apiServer, "web-1-x")
		o.rest()
		o.expectPolicies("there is a revision to go back to", "forbid", "permit")
		ready := func(n int32) {
			changeAs(o.apiServer, "status", "kube-controller-manager", "web", func(d *appsv1.Deployment) { d.Status.ReadyReplicas = n })
			o.rest()
		}
		ready(2) // The entry in managedFields that comes with it is no progress of pods.
		remembered := o.states.get(key("web")).settled
		if before == nil || remembered == before {
			t.Fatal("no pass after the edit is remembered")
		}
		ready(1)
		if now := o.server("web").Status.ReadyReplicas; now != 1 {
			t.Errorf("no pass has seen the Deployment: %d replicas are ready", now)
		}
		if o.states.get(key("web")).settled != remembered {
			t.Error("each child was planned again")
		}
		remove[*appsv1.ReplicaSet](o.apiServer, "web-1")
		o.rest()
		o.expectPolicies("nothing is left of the first revision", "forbid")
	})
}
