// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// backUp returns the MCPServers and their children, and removes them.
func (s *apiServer) backUp() (servers, children []runtime.Object) {
	s.t.Helper()
	servers = slices.Clone(s.api.List(s.kindOf(&v1beta1.MCPServer{})))
	for _, empty := range []runtime.Object{
		&corev1.ConfigMap{}, &appsv1.Deployment{}, &rbacv1.RoleBinding{}, &rbacv1.Role{}, &corev1.ServiceAccount{}, &corev1.Service{}, &appsv1.StatefulSet{},
	} {
		children = append(children, s.api.List(s.kindOf(empty))...)
	}
	for _, saved := range slices.Concat(servers, children) {
		if err := s.api.Remove(s.kindOf(saved), "shop", access(saved).GetName()); err != nil {
			s.t.Fatal(err)
		}
	}
	return servers, children
}

// restoreBackup creates the objects of a backup as Velero does: each with a label and with the references to its earlier owners, but
// without a status and under a new UID. Then it puts their managedFields back, and between the two it calls a function.
func (s *apiServer) restoreBackup(objects []runtime.Object, between func()) {
	s.t.Helper()
	for _, saved := range objects {
		kind, restored := s.kindOf(saved), saved.DeepCopyObject()
		m := access(restored)
		m.SetResourceVersion("")
		m.SetManagedFields(nil)
		labels := map[string]string{"velero.io/restore-name": "r"}
		maps.Copy(labels, m.GetLabels())
		m.SetLabels(labels)
		switch restored := restored.(type) {
		case *v1beta1.MCPServer:
			restored.Status = v1beta1.MCPServerStatus{}
		case *appsv1.Deployment:
			restored.Status = appsv1.DeploymentStatus{}
		case *appsv1.StatefulSet:
			restored.Status = appsv1.StatefulSetStatus{}
		}
		// The operator may have created a child before.
		if err := s.api.Create(kind, restored, "velero-server"); err != nil && !apierrors.IsAlreadyExists(err) {
			s.t.Fatal(err)
		}
		between()
		s.changeAt(kind, "", "velero-server", m.GetName(), func(live runtime.Object) {
			access(live).SetManagedFields(access(saved).GetManagedFields())
		})
	}
}

// A backup tool restores an MCPServer and its children while the operator runs, with the UIDs and the managedFields of the objects that it
// saved. ToolHive has never written any of them, so this is no takeover, and Freehold adopts the children.
func TestRestoredBackupIsNoTakeover(t *testing.T) {
	for name, c := range map[string]struct{ serverFirst, slowly bool }{
		"children first": {},
		"children first, managedFields after a pass":      {slowly: true},
		"the MCPServer first":                             {serverFirst: true},
		"the MCPServer first, managedFields after a pass": {serverFirst: true, slowly: true},
	} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				before := o.server("web")
				servers, children := o.backUp()
				o.rest()
				remove[*corev1.Pod](o.apiServer, "web-0")
				o.rest()
				o.events.heard()
				between := func() {
					if c.slowly {
						o.rest()
					}
				}
				if c.serverFirst {
					o.restoreBackup(servers, between)
					o.restoreBackup(children, between)
				} else {
					o.restoreBackup(children, between)
					o.restoreBackup(servers, between)
				}
				o.rest()
				server := o.server("web")
				if server.UID == before.UID || !managers.Owns(before, managers.Status, "status") {
					t.Fatalf("the test restores nothing: UID %s, managedFields %v", server.UID, before.ManagedFields)
				}
				if told := takenOver(server); told != nil {
					t.Errorf("a takeover is reported: %v", told)
				}
				backendReady(o.apiServer, "web")
				o.addBackendPod(server, "second")
				<-time.After(time.Minute)
				o.rest()
				for _, event := range o.events.heard() {
					if strings.Contains(event, "TakingOver") || strings.Contains(event, "TakenOver") {
						t.Errorf("event %q", event)
					}
				}
				server = o.server("web")
				if told := takenOver(server); told != nil {
					t.Errorf("a takeover is reported: %v", told)
				}
				if !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionFieldsOwned) {
					t.Errorf("conditions %v", server.Status.Conditions)
				}
				for _, saved := range children {
					child, there := o.api.Get(o.kindOf(saved), "shop", access(saved).GetName())
					if !there || !metav1.IsControlledBy(access(child), server) {
						t.Errorf("%T %s is not adopted", saved, access(saved).GetName())
					}
				}
				o.took()
				<-time.After(time.Hour)
				o.rest()
				o.expect(nil, "the children are adopted")
			})
		})
	}
}

// A user removes the conditions that Freehold has written. They come back, and no takeover is reported.
func TestClearedConditionsAreNoTakeover(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		before := o.server("web").Status.Conditions
		o.events.heard()
		changeAs(o.apiServer, "status", "kubectl-patch", "web", func(server *v1beta1.MCPServer) { server.Status.Conditions = nil })
		o.rest()
		if after := o.server("web").Status.Conditions; len(after) != len(before) || takenOver(o.server("web")) != nil {
			t.Errorf("conditions %v, want %v", after, before)
		}
		if told := o.events.heard(); len(told) > 0 {
			t.Errorf("events %q", told)
		}
	})
}

// An operator takes over all that ToolHive has made, its status included, and ends before it writes that. The next one reports the takeover.
func TestTakeoverThatWasNotReportedIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := byToolHive("web", "2")
		server := objects[0].(*v1beta1.MCPServer)
		server.Status = v1beta1.MCPServerStatus{Phase: v1beta1.PhaseReady, Conditions: []metav1.Condition{{
			Type: v1beta1.ConditionStdioReplicaCapped, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonStdioReplicaCapNotActive,
		}}}
		status := entry(managers.ToolHiveOperator, metav1.ManagedFieldsOperationUpdate, v1beta1.SchemeGroupVersion.String(),
			`{"f:status":{"f:phase":{},"f:conditions":{".":{},"k:{\"type\":\"StdioReplicaCapped\"}":{".":{},"f:type":{},"f:status":{},"f:reason":{}}}}}`)
		status.Subresource = "status"
		server.ManagedFields = append(server.ManagedFields, status)
		s := newAPIServer(t, objects...)
		s.before.set(func(w write) error {
			if w.verb == "apply" && w.subresource == "status" {
				return apierrors.NewForbidden(schema.GroupResource{}, w.name, errors.New("not now"))
			}
			return nil
		})
		o := start(t, s, nil)
		o.rest()
		o.replaceProxy("web")
		proxyReady(s, "web")
		<-time.After(2 * maxBackoff)
		o.rest()
		if live := o.server("web"); len(o.taken("web")) < 2 || takeover.Held(live, "status") || takenOver(live) != nil {
			t.Fatalf("the operator has taken %v and reports %v", o.taken("web"), takenOver(live))
		}
		o.end()
		s.before.set(nil)
		o = start(t, s, nil)
		defer o.end()
		o.rest()
		o.expectCondition("by the next operator", v1beta1.ConditionTakenOver, metav1.ConditionTrue, v1beta1.ReasonTakenOver)
		if told := o.events.heard(); !slices.ContainsFunc(told, func(event string) bool { return strings.Contains(event, "TakenOver") }) {
			t.Errorf("events %q, want one about the takeover", told)
		}
	})
}
