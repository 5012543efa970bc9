// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// issuer is an MCPOIDCConfig.
func issuer(address string) *v1beta1.MCPOIDCConfig {
	return &v1beta1.MCPOIDCConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "corp", Namespace: "shop", Generation: 1},
		Spec: v1beta1.MCPOIDCConfigSpec{
			Type: v1beta1.MCPOIDCConfigTypeInline, Inline: &v1beta1.InlineOIDCSharedConfig{Issuer: address},
		},
	}
}

// authenticated is an MCPServer that accepts tokens of an issuer.
func authenticated(name string) *v1beta1.MCPServer {
	server := newServer(name)
	server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "corp", Audience: "tools"}
	return server
}

func (o *operating) expectReference(why string, status metav1.ConditionStatus, reason, text string) {
	o.t.Helper()
	gotStatus, gotReason, message := o.condition("web", v1beta1.ConditionOIDCConfigRefValidated)
	if gotStatus != status || gotReason != reason || !strings.Contains(message, text) {
		o.t.Errorf("%s: %s because of %s: %s\nwant %s because of %s: %s", why, gotStatus, gotReason, message, status, reason, text)
	}
}

func hasProxy(o *operating) bool {
	_, found := get[*appsv1.Deployment](o.apiServer, "web")
	return found
}

// A reference that cannot be used keeps the proxy from being made, and nothing else. A proxy that runs goes on with what it has.
func TestAnUnusableReferenceHoldsTheProxyAlone(t *testing.T) {
	operate(t, []runtime.Object{authenticated("web")}, nil, func(t *testing.T, o *operating) {
		got := o.took()
		if !slices.Contains(got, "apply StatefulSet/web freehold-backend") || slices.Contains(got, "apply ConfigMap/web-runconfig freehold-runconfig") {
			t.Errorf("writes while there is no MCPOIDCConfig: %v", got)
		}
		backendReady(o.apiServer, "web")
		o.rest()
		if hasProxy(o) {
			t.Fatal("there is a proxy that lets everybody in")
		}
		o.expectReference("missing", metav1.ConditionFalse, v1beta1.ReasonOIDCConfigRefNotFound, "No proxy is made")

		o.add(issuer("https://idp.example.com"))
		o.becomeReady("web")
		o.expectReference("there", metav1.ConditionTrue, v1beta1.ReasonOIDCConfigRefValid, "")
		if !strings.Contains(o.read("web"), `"Issuer": "https://idp.example.com"`) {
			t.Errorf("the proxy reads %s", o.read("web"))
		}

		change(o.apiServer, "corp", func(c *v1beta1.MCPOIDCConfig) { c.Spec.Inline.Issuer = "http://idp.example.com" })
		o.rest()
		change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Spec.Image = "ghcr.io/example/other:2" })
		o.rest()
		o.expectReference("edited to something invalid", metav1.ConditionFalse, v1beta1.ReasonOIDCConfigRefNotValid, "generation 1 of mcpoidcconfig/corp")
		if status, _, _ := o.condition("web", v1beta1.ConditionReady); status != metav1.ConditionFalse {
			t.Errorf("Ready is %s", status)
		}
		got = o.took()
		if !slices.Contains(got, "apply StatefulSet/web freehold-backend") || slices.ContainsFunc(got, func(w string) bool {
			return strings.Contains(w, "Deployment") || strings.Contains(w, "runconfig")
		}) {
			t.Errorf("writes while the MCPOIDCConfig is invalid: %v", got)
		}
		if !strings.Contains(o.read("web"), `"Issuer": "https://idp.example.com"`) {
			t.Errorf("the proxy reads %s", o.read("web"))
		}

		remove[*v1beta1.MCPOIDCConfig](o.apiServer, "corp")
		o.rest()
		o.expectReference("deleted", metav1.ConditionFalse, v1beta1.ReasonOIDCConfigRefNotFound, "keeps the configuration that it has")
		if !strings.Contains(o.read("web"), `"Issuer": "https://idp.example.com"`) {
			t.Errorf("the proxy reads %s", o.read("web"))
		}
		o.took()

		o.add(issuer("https://new.example.com"))
		o.rest()
		o.expectReference("made anew", metav1.ConditionTrue, v1beta1.ReasonOIDCConfigRefValid, "")
		if got := o.took(); !slices.Contains(got, "apply Deployment/web freehold-proxy") || !strings.Contains(o.read("web"), "https://new.example.com") {
			t.Errorf("writes %v; the proxy reads %s", got, o.read("web"))
		}
		change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Spec.OIDCConfigRef = nil })
		o.rest()
		if strings.Contains(o.read("web"), "Issuer") {
			t.Errorf("the reference is gone, and the proxy reads %s", o.read("web"))
		}
		if status, _, _ := o.condition("web", v1beta1.ConditionOIDCConfigRefValidated); status != "" {
			t.Errorf("there is still a condition, which is %s", status)
		}
	})
}

// expectNothingMoved compares what was written since with what may be while the proxy that runs does not know the new ports.
func (o *operating) expectNothingMoved() {
	o.t.Helper()
	for _, w := range o.took() {
		if strings.Contains(w, "StatefulSet") || strings.Contains(w, "Service/") || strings.Contains(w, "Deployment") {
			o.t.Errorf("%s, and the proxy that runs does not know the new ports", w)
		}
	}
}

// While a reference cannot be used, neither the backend nor a Service moves away from the proxy that runs.
func TestEndpointStaysWithAHeldProxy(t *testing.T) {
	operate(t, []runtime.Object{authenticated("web"), issuer("https://idp.example.com")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		remove[*v1beta1.MCPOIDCConfig](o.apiServer, "corp")
		o.rest()
		change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Spec.MCPPort, s.Spec.ProxyPort = 9999, 7777 })
		o.rest()
		o.expectNothingMoved()
		o.add(issuer("https://idp.example.com"))
		o.rest()
		got := o.took()
		for _, want := range []string{"apply Deployment/web freehold-proxy", "apply StatefulSet/web freehold-backend", "apply Service/mcp-web-proxy freehold-service"} {
			if !slices.Contains(got, want) {
				t.Errorf("writes %v, want %s", got, want)
			}
		}
	})
}

// The same holds for an operator that begins when no informer shows the proxy and its Services, since they have lost their labels.
func TestEndpointStaysWithAHeldProxyThatNoInformerShows(t *testing.T) {
	operate(t, []runtime.Object{authenticated("web"), issuer("https://idp.example.com")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		remove[*v1beta1.MCPOIDCConfig](o.apiServer, "corp")
		o.rest()
		o.end()
		change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Spec.MCPPort, s.Spec.ProxyPort = 9999, 7777 })
		change(o.apiServer, "web", func(d *appsv1.Deployment) { d.Labels = nil })
		for _, name := range []string{"mcp-web", "mcp-web-proxy", "mcp-web-headless"} {
			change(o.apiServer, name, func(s *corev1.Service) { s.Labels = nil })
		}
		o.took()
		*o = *start(t, o.apiServer, nil)
		<-time.After(time.Hour)
		o.rest()
		o.expectNothingMoved()
	})
}

// While a proxy with transport stdio is held, it may attach to its backend.
func TestRoleStaysWithAHeldProxy(t *testing.T) {
	server := authenticated("web")
	server.Spec.Transport, server.Spec.MCPPort = v1beta1.TransportStdio, 0
	operate(t, []runtime.Object{server, issuer("https://idp.example.com")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		remove[*v1beta1.MCPOIDCConfig](o.apiServer, "corp")
		o.rest()
		o.took()
		change(o.apiServer, "web", func(s *v1beta1.MCPServer) {
			s.Spec.Transport, s.Spec.MCPPort = v1beta1.TransportStreamableHTTP, 9000
		})
		o.rest()
		for _, w := range o.took() {
			if strings.Contains(w, "Role/") || strings.Contains(w, "StatefulSet") {
				t.Errorf("%s, and the proxy that runs attaches to the backend", w)
			}
		}
		o.add(issuer("https://idp.example.com"))
		o.rest()
		if got := o.took(); !slices.ContainsFunc(got, func(w string) bool { return strings.HasPrefix(w, "apply Role/") }) {
			t.Errorf("writes %v, want one of the Role", got)
		}
	})
}

// A cluster that does not serve a kind, or does not let the operator list it, keeps the proxies alone that need it.
func TestAKindThatIsNotThereHoldsOnlyTheProxiesThatNeedIt(t *testing.T) {
	for name, c := range map[string]struct {
		answer       error
		reason, text string
		// later is when it is taken for a fact.
		later time.Duration
		// unserved is set where the API server's documents say that it does not serve the kind.
		unserved string
	}{
		"not served":           {pageNotFound(), v1beta1.ReasonOIDCConfigRefNotFound, "CustomResourceDefinition", 0, "mcpoidcconfigs"},
		"served and not found": {pageNotFound(), v1beta1.ReasonOIDCConfigRefError, "for now", 30 * time.Second, ""},
		"forbidden": {
			apierrors.NewForbidden(v1beta1.Resource("mcpoidcconfigs"), "", nil), v1beta1.ReasonOIDCConfigRefError, "not allowed", 0, "",
		},
		"broken": {apierrors.NewInternalError(errors.New("etcd")), v1beta1.ReasonOIDCConfigRefError, "for now", 30 * time.Second, ""},
		"initializing": { // client-go tells nobody of these answers
			apierrors.NewTooManyRequests("storage is (re)initializing", 0), v1beta1.ReasonOIDCConfigRefError, "for now", 30 * time.Second, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var mended atomic.Bool
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t, authenticated("web"), newServer("plain"), issuer("https://idp.example.com"))
				s.unserved.Store(c.unserved)
				s.onReads("mcpoidcconfigs", func() error {
					if mended.Load() {
						return nil
					}
					return c.answer
				})
				o := start(t, s, nil)
				defer o.end()
				o.rest()
				o.becomeReady("plain")
				if c.later > 0 {
					o.expectReference("at first", "", "", "")
					<-time.After(c.later)
				}
				o.rest()
				o.expectReference(name, metav1.ConditionFalse, c.reason, c.text)
				o.took()
				<-time.After(time.Hour)
				o.expect(nil, "the kind is still not there")
				mended.Store(true)
				<-time.After(2 * time.Minute) // The kind is listed again by then.
				o.becomeReady("web")
				o.expectReference("served", metav1.ConditionTrue, v1beta1.ReasonOIDCConfigRefValid, "")
			})
		})
	}
}

// Answers that say nothing about the kind change nothing for MCPServers that serve, unless they last: the reflector lists again.
func TestAKindThatFailsForAMomentChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, authenticated("web"), issuer("https://idp.example.com"))
		o := start(t, s, nil)
		o.rest()
		o.becomeReady("web")
		o.end()
		var failed atomic.Int32
		begun := time.Now()
		s.onReads("mcpoidcconfigs", func() error {
			if time.Since(begun) < 5*time.Second {
				failed.Add(1)
				return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
			}
			return nil
		})
		o = start(t, s, nil)
		defer o.end()
		<-time.After(time.Hour)
		o.expect(nil, "after a restart")
		if failed.Load() == 0 {
			t.Error("the kind was never read in vain")
		}
		change(s, "web", func(s *v1beta1.MCPServer) { s.Spec.Image = "ghcr.io/example/other:2" })
		o.rest()
		if len(o.took()) == 0 {
			t.Error("an edit is not carried out")
		}
	})
}

// A child that tells of a newer state of a reference is not written over, until one read shows that there is no such state.
func TestForgedReferencesAreWrittenOverAfterOneRead(t *testing.T) {
	operate(t, []runtime.Object{authenticated("web"), issuer("https://idp.example.com")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.reads()
		o.events.heard()
		rewrite(o.apiServer, "web", func(d *appsv1.Deployment) {
			recorded := d.Annotations[v1beta1.AnnotationReferences]
			name, state, _ := strings.Cut(recorded, "=")
			uid, _, _ := strings.Cut(state, "/")
			d.Annotations[v1beta1.AnnotationReferences] = name + "=" + uid + "/99@999999"
			d.Spec.Template.Spec.Containers[0].Image = "forged"
		})
		o.rest()
		if reads := o.reads(); !slices.Equal(reads, []string{"get mcpoidcconfigs"}) {
			t.Errorf("reads %v", reads)
		}
		deployment, _ := get[*appsv1.Deployment](o.apiServer, "web")
		if strings.Contains(deployment.Annotations[v1beta1.AnnotationReferences], "/99@") {
			t.Errorf("it is still forged: %s", deployment.Annotations[v1beta1.AnnotationReferences])
		}
		if told := strings.Join(o.events.heard(), "\n"); !strings.Contains(told, "SourceReplaced") {
			t.Errorf("events: %s", told)
		}
	})
}
