// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
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
	"github.com/freehold-dev/freehold/pkg/render"
)

// serveProxy has the backend and the proxy of an MCPServer run.
func (o *operating) serveProxy(name string) {
	o.t.Helper()
	backendReady(o.apiServer, name)
	o.addBackendPod(o.server(name), "first")
	o.rest()
	o.addProxyPod(name, proxyPod(name, render.ProxySelector(name)))
	proxyReady(o.apiServer, name)
	o.rest()
}

// expectNoAddress fails the test unless the status names no URL, although the proxy runs.
func (o *operating) expectNoAddress(name, why string) {
	o.t.Helper()
	got := o.server(name).Status
	if got.URL != "" || got.Phase == v1beta1.PhaseReady {
		o.t.Errorf("%s: phase %s, URL %q: %s", why, got.Phase, got.URL, got.Message)
	}
	if status, _, _ := o.condition(name, v1beta1.ConditionReady); status == metav1.ConditionTrue {
		o.t.Errorf("%s: Ready is True", why)
	}
}

func (o *operating) expectAddress(name, why string) {
	o.t.Helper()
	if got := o.server(name).Status; got.Phase != v1beta1.PhaseReady || !strings.Contains(got.URL, "//mcp-"+name+"-proxy.") {
		o.t.Errorf("%s: phase %s, URL %q: %s", why, got.Phase, got.URL, got.Message)
	}
}

// The Service for the clients of pay is the backend's Service of pay-proxy. While that one has it, pay names no URL: its clients would
// reach the other backend, past the proxy.
func TestURLOfAnothersServiceIsNotNamed(t *testing.T) {
	operate(t, []runtime.Object{newServer("pay-proxy")}, nil, func(_ *testing.T, o *operating) {
		o.add(newServer("pay"))
		o.rest()
		o.serveProxy("pay")
		o.expectNoAddress("pay", "the Service belongs to pay-proxy")
		markDeleted(o.apiServer, "pay-proxy")
		o.rest()
		remove[*corev1.Service](o.apiServer, "mcp-pay-proxy")
		o.rest()
		o.expectAddress("pay", "it has a Service of its own")
	})
}

func TestURLOfAServiceThatIsNotWrittenIsNotNamed(t *testing.T) {
	operate(t, nil, nil, func(t *testing.T, o *operating) {
		refuses := func(w write) error {
			if w.name == "mcp-web-proxy" {
				return apierrors.NewForbidden(schema.GroupResource{}, w.name, errors.New("not now"))
			}
			return nil
		}
		o.before.set(refuses)
		o.add(newServer("web"))
		o.rest()
		o.serveProxy("web")
		o.expectNoAddress("web", "the Service is refused")
		o.before.set(nil)
		o.queue.Add(key("web"))
		<-time.After(apply.LongestWait)
		o.rest()
		o.expectAddress("web", "the Service is written")

		// An edit of a Service that is there takes nothing away.
		o.before.set(refuses)
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.SessionAffinity = "None" })
		o.rest()
		if got := o.server("web").Status.URL; got == "" {
			t.Error("the edit of the Service is refused: the URL is gone")
		}
	})
}

func TestURLOfATerminatingServiceIsNotNamed(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(_ *testing.T, o *operating) {
		o.becomeReady("web")
		o.expectAddress("web", "all is well")
		change(o.apiServer, "mcp-web-proxy", func(service *corev1.Service) {
			service.Finalizers = append(service.Finalizers, "example.com/balancer")
			service.DeletionTimestamp = &metav1.Time{Time: bubbleStart}
		})
		o.rest()
		o.expectNoAddress("web", "the Service is being deleted")
		remove[*corev1.Service](o.apiServer, "mcp-web-proxy")
		o.rest()
		o.expectAddress("web", "the Service is there again")
	})
}
