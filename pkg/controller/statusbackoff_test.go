// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/status"
)

// overwriteStatus writes a message into the status as another process of the operator would that sees something else.
func (o *operating) overwriteStatus(message string) {
	o.t.Helper()
	server := o.server("web").DeepCopy()
	server.Status.Message = message
	if _, err := o.servers.ToolhiveV1beta1().MCPServers("shop").ApplyStatus(
		o.t.Context(), status.Intent(server, server.Status), metav1.ApplyOptions{FieldManager: managers.Status}); err != nil {
		o.t.Fatal(err)
	}
}

// Two processes of the operator that see different things, one of them an old view, write the same status by turns. That is no
// hot loop: each writes at once what is new, and what another one has overwritten after waits that grow.
func TestAStatusThatATwinOverwritesIsNoHotLoop(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.took()
		right := o.server("web").Status.Message
		began, overwritten := time.Now(), 0
		for time.Since(began) < 10*time.Minute {
			if o.server("web").Status.Message == right {
				o.overwriteStatus("the view of another one")
				overwritten++
			}
			<-time.After(100 * time.Millisecond)
		}
		t.Logf("overwritten %d times", overwritten)
		if overwritten < 3 || overwritten > 20 {
			t.Errorf("in ten minutes the status was written anew %d times", overwritten)
		}

		// What is new is told at once.
		o.rest()
		o.removePods("web")
		o.rest()
		if phase := o.server("web").Status.Phase; phase == v1beta1.PhaseReady {
			t.Errorf("without pods it is %s", phase)
		}

		// When the other one is gone, the right one comes back.
		o.overwriteStatus("its last words")
		<-time.After(statusBounds.Longest + time.Second)
		o.rest()
		if message := o.server("web").Status.Message; message == "its last words" {
			t.Error("what another one wrote stays")
		}

		// After peace it is mended at once again.
		<-time.After(2*statusBounds.Longest + time.Second)
		o.overwriteStatus("again")
		o.rest()
		if message := o.server("web").Status.Message; message == "again" {
			t.Error("what another one wrote after peace stays")
		}
	})
}
