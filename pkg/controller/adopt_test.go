// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// A child that has lost its owner is given it back once the API server has confirmed that the owner is as it was seen.
// Until then it may have lost it because the owner is being deleted and the child is to stay.
func TestAdoptionIsConfirmed(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.took()
		var moved atomic.Bool
		moved.Store(true)
		o.before.set(func(w write) error {
			if moved.Load() && w.kind == "MCPServer" {
				return apierrors.NewConflict(schema.GroupResource{}, w.name, fmt.Errorf("it has changed"))
			}
			return nil
		})
		orphan[*corev1.Service](o.apiServer, "mcp-web-proxy")
		o.rest()
		tried := o.took()
		if !slices.Contains(tried, "apply MCPServer/web freehold-finalizer") {
			t.Errorf("the MCPServer was not to be confirmed: %v", tried)
		}
		for _, w := range tried {
			if !strings.HasPrefix(w, "apply MCPServer/web") {
				t.Errorf("a view that is not confirmed was acted upon: %s", w)
			}
		}

		moved.Store(false)
		<-time.After(maxBackoff)
		o.rest()
		written := slices.DeleteFunc(o.took(), func(w string) bool { return w == "apply MCPServer/web/status freehold-status" })
		want := []string{"apply MCPServer/web freehold-finalizer", "apply Service/mcp-web-proxy freehold-service"}
		if diff := cmp.Diff(want, written); diff != "" {
			t.Errorf("the MCPServer is confirmed: writes (-want +got):\n%s", diff)
		}
		o.queue.Add(key("web"))
		o.rest()
		o.expect(nil, "nothing has lost its owner")
	})
}

// As long as a child cannot be given its owner back, the MCPServer is confirmed once and not at every look, whatever its status does.
func TestConfirmationIsRemembered(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.before.set(func(w write) error {
			if w.kind == "Service" || w.kind == "Deployment" {
				return apierrors.NewInvalid(schema.GroupKind{}, w.name, nil)
			}
			return nil
		})
		orphan[*corev1.Service](o.apiServer, "mcp-web-proxy")
		orphan[*appsv1.Deployment](o.apiServer, "web")
		o.rest()
		o.took()
		for i := range int32(3) {
			changeAs(o.apiServer, "status", "kube-controller-manager", "web", func(d *appsv1.Deployment) { d.Status.UnavailableReplicas = i })
			o.rest()
		}
		for _, w := range o.took() {
			if strings.Contains(w, managers.Finalizer) {
				t.Errorf("%s, and the child is as it was", w)
			}
		}
	})
}
