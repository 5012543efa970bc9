// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
)

// An MCPServer that does not go says what holds it: nothing else does, as its status stays as it was. It is told once each
// time that the API server was asked, which becomes seldom.
func TestHeldDeletionIsTold(t *testing.T) {
	forbidden := func() error { return apierrors.NewForbidden(schema.GroupResource{}, "web", fmt.Errorf("not now")) }
	unavailable := func() error { return apierrors.NewInternalError(fmt.Errorf("etcd is gone")) }
	for name, test := range map[string]struct {
		write, wants string
		answer       func() error
	}{
		"forbidden finalizer":    {"apply MCPServer/web freehold-finalizer", "not now", forbidden},
		"denied finalizer":       {"apply MCPServer/web freehold-finalizer", "denied the request", deniedBody},
		"unavailable API server": {"apply MCPServer/web freehold-finalizer", "code 500 InternalError", unavailable},
		"forbidden deletion":     {"delete serviceaccounts/web-sa", "not now", forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				f := &faults{}
				f.inject(o, func(w write) bool {
					return strings.HasPrefix(w.String(), test.write) || w.verb == "apply" && w.name == "web-sa"
				}, test.answer)
				f.on.Store(true)
				orphan[*corev1.ServiceAccount](o.apiServer, "web-sa")
				o.rest()
				o.events.heard()
				before := f.count()
				markDeleted(o.apiServer, "web")
				<-time.After(time.Hour)
				told := o.events.heard()
				if tries := f.count() - before; len(told) == 0 || len(told) > tries || tries > 20 {
					t.Errorf("told %d times of %d refusals: %v", len(told), tries, told)
				}
				for _, event := range told {
					if !strings.HasPrefix(event, "shop/web Warning DeletionHeld Delete: ") || !strings.Contains(event, test.wants) {
						t.Errorf("told %q, want why the deletion is held: %s", event, test.wants)
					}
				}
				f.on.Store(false)
				<-time.After(2 * apply.LongestWait)
				if o.rest(); exists[*v1beta1.MCPServer](o.apiServer, "web") {
					t.Error("the MCPServer is still there")
				}
				if exists[*corev1.ServiceAccount](o.apiServer, "web-sa") {
					t.Error("the ServiceAccount was left behind")
				}
			})
		})
	}
}

// The last status of an MCPServer that another owner's finalizer keeps names that finalizer. It costs one write.
func TestAnMCPServerThatAnotherFinalizerKeepsSaysSo(t *testing.T) {
	server := newServer("web")
	server.Finalizers = []string{"example.com/keep"}
	operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		markDeleted(o.apiServer, "web")
		<-time.After(time.Hour)
		o.rest()
		o.expect([]string{"apply MCPServer/web/status freehold-status", "apply MCPServer/web freehold-finalizer"}, "it is being deleted")
		const message = "MCP server is being deleted, and stays until others remove their finalizers: example.com/keep"
		if got := o.server("web").Status; got.Phase != v1beta1.PhaseTerminating || got.Message != message {
			t.Errorf("phase %s: %s", got.Phase, got.Message)
		}
		for conditionType, want := range map[string]metav1.ConditionStatus{
			v1beta1.ConditionReady: metav1.ConditionFalse, v1beta1.ConditionReconciling: metav1.ConditionTrue, v1beta1.ConditionStalled: metav1.ConditionFalse,
			v1beta1.ConditionSpecValid: metav1.ConditionTrue,
		} {
			if got, _, _ := o.condition("web", conditionType); got != want {
				t.Errorf("%s is %s, want %s", conditionType, got, want)
			}
		}
		if told := o.events.heard(); len(told) > 0 {
			t.Errorf("events %q", told)
		}
	})
}

// The rollouts of an MCPServer that is being deleted are nobody's concern, however long another finalizer keeps it.
func TestRolloutsEndWithTheDeletion(t *testing.T) {
	server := newServer("web")
	server.Finalizers = []string{"example.com/keep"}
	operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		if len(o.Rollouts()) == 0 {
			t.Fatal("no rollouts are known")
		}
		change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.DeletionTimestamp = new(metav1.Now()) })
		o.rest()
		if left := o.Rollouts(); len(left) > 0 {
			t.Errorf("rollouts %v of an MCPServer that is being deleted", left)
		}
	})
}

// Neither are conflicts, which no user can settle any more.
func TestConflictsEndWithTheDeletion(t *testing.T) {
	server := newServer("web")
	server.Finalizers = []string{"example.com/keep"}
	operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.seizeLabel("web")
		o.patchStatus("web", "somebody", func(status *v1beta1.MCPServerStatus) { status.Message = "theirs" })
		o.rest()
		if found := len(o.Conflicts()); found != 2 {
			t.Fatalf("%d conflicts are counted, want one about the Deployment and one about the status", found)
		}
		change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.DeletionTimestamp = new(metav1.Now()) })
		o.rest()
		if found := o.Conflicts(); len(found) > 0 {
			t.Errorf("conflicts of an MCPServer that is being deleted are counted: %v", found)
		}
	})
}
