// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// A kind that names groups without being a member of any makes no difference to the status of a group.
func TestGroupIsReadyWithoutVirtualServers(t *testing.T) {
	for name, refusal := range map[string]error{
		"an internal error": apierrors.NewInternalError(errors.New("etcd")), "forbidden": apierrors.NewForbidden(schema.GroupResource{}, "", nil),
	} {
		t.Run(name, func(t *testing.T) {
			client, with := counting(other("MCPRemoteProxy", "far", map[string]any{"groupRef": ref("team")}))
			client.PrependReactor("list", "virtualmcpservers", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
			operate(t, []runtime.Object{newGroup("team"), inGroup(newServer("web"), "team")}, with, func(t *testing.T, o *operating) {
				<-time.After(time.Minute)
				group, _ := get[*v1beta1.MCPGroup](o.apiServer, "team")
				if is := group.Status; is.Phase != v1beta1.MCPGroupPhaseReady || is.ServerCount != 1 || is.RemoteProxyCount != 1 ||
					!meta.IsStatusConditionTrue(is.Conditions, v1beta1.ConditionMCPServersChecked) {
					t.Errorf("status %+v", is)
				}
			})
		})
	}
}

// While the API server does not list a kind that has members, the status says so, and keeps those of the kind that were known last.
func TestAGroupKeepsMembersThatCannotBeListed(t *testing.T) {
	client, with := counting(other("MCPServerEntry", "aside", map[string]any{"groupRef": ref("team")}))
	var fails atomic.Bool
	client.PrependReactor("list", "mcpserverentries", func(clienttesting.Action) (bool, runtime.Object, error) {
		if fails.Load() {
			return true, nil, apierrors.NewInternalError(errors.New("etcd"))
		}
		return false, nil, nil
	})
	operate(t, []runtime.Object{newGroup("team"), inGroup(newServer("web"), "team")}, with, func(t *testing.T, o *operating) {
		check := func(what string, want metav1.ConditionStatus, reason string, entries ...string) {
			t.Helper()
			group, _ := get[*v1beta1.MCPGroup](o.apiServer, "team")
			c := meta.FindStatusCondition(group.Status.Conditions, v1beta1.ConditionMCPServersChecked)
			if c == nil || c.Status != want || c.Reason != reason || group.Status.Phase != v1beta1.MCPGroupPhaseReady ||
				!slices.Equal(group.Status.Entries, entries) || group.Status.ServerCount != 1 {
				t.Errorf("%s: status %+v", what, group.Status)
			} else if want == metav1.ConditionFalse && !strings.HasSuffix(unworded(c.Message), ": "+"MCPServerEntry") {
				t.Errorf("%s: %s", what, c.Message)
			}
		}
		check("at the start", metav1.ConditionTrue, v1beta1.ReasonListMCPServersCheckSucceeded, "aside")
		fails.Store(true)
		o.tookOn()
		o.end()
		again := start(t, o.apiServer, with)
		again.rest()
		checkWrites(t, "after a restart, as long as it may pass", again.tookOn())
		<-time.After(time.Minute)
		check("during the outage", metav1.ConditionFalse, v1beta1.ReasonListMCPServersCheckFailed, "aside")
		checkWrites(t, "of the outage", again.tookOn(), "apply MCPGroup/team/status freehold-group-status")
		<-time.After(time.Hour)
		checkWrites(t, "meanwhile", again.tookOn())
		forgo(t, client, "MCPServerEntry", "aside")
		fails.Store(false)
		<-time.After(time.Minute)
		check("afterwards", metav1.ConditionTrue, v1beta1.ReasonListMCPServersCheckSucceeded)
		*o = *again
	})
}
