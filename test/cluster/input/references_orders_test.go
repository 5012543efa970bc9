// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/faultproxy"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestAnMCPServerAndItsIssuerComeInEitherOrder makes an MCPServer and its issuer, either first, at once and far apart. Each child is
// written once, and nothing while nothing changes, nor when the operator is started again.
func TestAnMCPServerAndItsIssuerComeInEitherOrder(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*testing.T, scene, *v1beta1.MCPServer){
		"issuer first": func(t *testing.T, s scene, server *v1beta1.MCPServer) {
			s.publish(t, issuer(address(1)))
			s.Create(t, server)
		},
		"server first": func(t *testing.T, s scene, server *v1beta1.MCPServer) {
			s.Create(t, server)
			s.publish(t, issuer(address(1)))
		},
		"server long before": func(t *testing.T, s scene, server *v1beta1.MCPServer) {
			s.Create(t, server)
			s.AwaitStatus(t, server.Name, missing.Saying(noneIsMade), notReady)
			s.AwaitComponents(t, server.Name, slices.DeleteFunc(harness.HTTPComponents(), func(c harness.Component) bool {
				return c == harness.RunConfig || c == harness.Proxy
			}))
			s.AwaitRest(t)
			s.Quiet(t, s.Mark(t), harness.Calm)
			s.publish(t, issuer(address(1)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			p, history, mark := s.Operate(t, ours), s.record(t), s.Mark(t)
			server := harness.HTTPServer(web, authenticated)
			begin(t, s, server)
			s.AwaitStatus(t, web, append(slices.Clone(harness.Fine), usable)...)
			s.AwaitSettled(t, web)
			s.expectWritten(t, web, mark, harness.CreationWrites(harness.ComponentsOf(server)))
			s.Quiet(t, s.Mark(t), harness.Calm)
			mark = s.Mark(t)
			s.ReplaceOperator(t, p, ours, "--resync-period="+harness.ShortResync.String())
			s.AwaitRest(t)
			if tried := s.Writes(t, mark); len(tried) > 0 {
				t.Errorf("a restart costs writes: %v", tried)
			}
			s.Quiet(t, s.Mark(t), harness.ShortResync+harness.Calm)
			for _, v := range history.templates(t) {
				if !strings.Contains(v.document, address(1)) {
					t.Errorf("a proxy was to read %s", v.document)
				}
			}
		})
	}
}

// TestSlowConfigMap starts an operator that is long without the certificate authorities of an authorization server, which the
// template of its proxy depends on. It writes nothing before it has them, and nothing then.
func TestSlowConfigMap(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := newScene(t)
	first := s.Operate(t, ours)
	s.bundle(t, certificate(t, "first"))
	s.publishAuthServer(t)
	s.publish(t, issuer(authServerURL))
	s.settled(t, harness.HTTPServer(web, loggingIn))
	before := s.Versions(t)
	harness.Stop(t, first)

	proxy := s.Proxy(t, faultproxy.Options{})
	hold := proxy.Hold(asksForBundle)
	mark := s.Mark(t)
	p := s.OperateThrough(t, proxy, ours)
	harness.Await(t, "the operator asks for the ConfigMap", hold.Caught())
	s.AwaitLook(t, p)
	if tried := s.Writes(t, mark); len(tried) > 0 {
		t.Errorf("an operator that does not know the ConfigMap writes: %v", tried)
	}
	hold.Release()
	harness.AwaitLooks(t, p, 1)
	s.AwaitLook(t, p)
	if tried := s.Writes(t, mark); len(tried) > 0 {
		t.Errorf("an operator that has got to know the ConfigMap writes: %v", tried)
	}
	if diff := cmp.Diff(before, s.Versions(t)); diff != "" {
		t.Errorf("objects have changed (-before +after):\n%s", diff)
	}
}

// bundleName is the name of the ConfigMap with certificate authorities.
const bundleName = "corp-ca"

// bundle makes or replaces the ConfigMap with certificate authorities.
func (s scene) bundle(t *testing.T, pem string) *corev1.ConfigMap {
	t.Helper()
	configMaps := s.Core.CoreV1().ConfigMaps(s.Name)
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: bundleName}, Data: map[string]string{"ca.crt": pem}}
	if updated, err := configMaps.Update(t.Context(), wanted, metav1.UpdateOptions{}); err == nil {
		return updated
	}
	made, err := configMaps.Create(t.Context(), wanted, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}
