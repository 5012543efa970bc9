// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestOnlyWhatAProxyReadsReplacesItsPods edits what an MCPServer refers to, field by field. What a proxy reads replaces its pods once, and
// what no proxy reads is not written anywhere.
func TestOnlyWhatAProxyReadsReplacesItsPods(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		refer  harness.Change
		begin  func(*testing.T, scene)
		change func(*testing.T, scene)
		writes harness.WriteCount
	}{
		{
			name: "issuer", refer: authenticated, begin: withIssuer, writes: harness.Once("runconfig", "proxy"),
			change: revising(func(inline *v1beta1.InlineOIDCSharedConfig) { inline.Issuer = address(2) }),
		},
		{
			name: "name of a Secret", refer: authenticated, begin: withIssuer, writes: harness.Once("proxy"),
			change: revising(func(inline *v1beta1.InlineOIDCSharedConfig) { inline.ClientSecretRef.Name = "other" }),
		},
		{
			name: "key of a Secret", refer: authenticated, begin: withIssuer, writes: harness.Once("proxy"),
			change: revising(func(inline *v1beta1.InlineOIDCSharedConfig) { inline.ClientSecretRef.Key = "other" }),
		},
		{
			name: "what no proxy reads", refer: authenticated, begin: withIssuer, writes: harness.WriteCount{},
			change: revising(func(inline *v1beta1.InlineOIDCSharedConfig) { inline.ProtectedResourceAllowPrivateIP = true }),
		},
		{
			name: "authorities of an issuer", refer: authenticated, begin: withBundle, writes: harness.Once("proxy"),
			change: func(t *testing.T, s scene) { s.bundle(t, certificate(t, "second")) },
		},
		{
			name: "another key beside the authorities", refer: authenticated, begin: withBundle, writes: harness.WriteCount{}, change: addKey,
		},
		{
			name: "authorities of an authorization server", refer: loggingIn, begin: withAuthServer, writes: harness.Once("proxy"),
			change: func(t *testing.T, s scene) { s.bundle(t, certificate(t, "second")) },
		},
		{
			name: "another key beside those of an authorization server", refer: loggingIn, begin: withAuthServer,
			writes: harness.WriteCount{}, change: addKey,
		},
		{
			name: "authorities of a collector", begin: withCollector, writes: harness.Once("proxy"),
			refer: func(server *v1beta1.MCPServer) {
				server.Spec.TelemetryConfigRef = &v1beta1.MCPTelemetryConfigReference{Name: shared}
			},
			change: func(t *testing.T, s scene) { s.bundle(t, certificate(t, "second")) },
		},
		{
			name: "header that a gateway adds", writes: harness.WriteCount{}, begin: withHeader,
			refer: func(server *v1beta1.MCPServer) {
				server.Spec.ExternalAuthConfigRef = &v1beta1.ExternalAuthConfigRef{Name: shared}
			},
			change: func(t *testing.T, s scene) {
				body := []byte(`{"spec":{"headerInjection":{"headerName":"X-Other","valueSecretRef":{"name":"other","key":"value"}}}}`)
				_, err := s.Env.Servers.ToolhiveV1beta1().MCPExternalAuthConfigs(s.Name).
					Patch(t.Context(), shared, types.MergePatchType, body, metav1.PatchOptions{FieldManager: harness.Author})
				if err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			p := s.Operate(t, foreign)
			c.begin(t, s)
			s.settled(t, harness.HTTPServer(web, c.refer))
			before, mark := s.deployment(t, web), s.Mark(t)
			c.change(t, s)
			rolls := int64(c.writes["proxy"])
			harness.Eventually(t, "the Deployment follows", func(context.Context) error {
				if got := s.deployment(t, web).Generation; got != before.Generation+rolls {
					return fmt.Errorf("it has gone from generation %d to %d", before.Generation, got)
				}
				return nil
			})
			s.AwaitSettled(t, web)
			s.AwaitLook(t, p)
			s.expectWritten(t, web, mark, c.writes)
			if got := s.deployment(t, web).Generation; got != before.Generation+rolls {
				t.Errorf("the Deployment has gone from generation %d to %d", before.Generation, got)
			}
			s.AwaitStatus(t, web, harness.Fine...)
			s.Quiet(t, s.Mark(t), harness.Calm)
		})
	}
}

func withIssuer(t *testing.T, s scene) {
	t.Helper()
	config := issuer(address(1))
	config.Spec.Inline.ClientSecretRef = &v1beta1.SecretKeyRef{Name: "client", Key: "secret"}
	s.publish(t, config)
}

func withBundle(t *testing.T, s scene) {
	t.Helper()
	s.bundle(t, certificate(t, "first"))
	config := issuer(address(1))
	config.Spec.Inline.CABundleRef = bundled()
	s.publish(t, config)
}

func withAuthServer(t *testing.T, s scene) {
	t.Helper()
	s.bundle(t, certificate(t, "first"))
	s.publishAuthServer(t)
	s.publish(t, issuer(authServerURL))
}

func withCollector(t *testing.T, s scene) {
	t.Helper()
	s.bundle(t, certificate(t, "first"))
	config := &v1beta1.MCPTelemetryConfig{
		ObjectMeta: metav1.ObjectMeta{Name: shared},
		Spec: v1beta1.MCPTelemetryConfigSpec{OpenTelemetry: &v1beta1.MCPTelemetryOTelConfig{
			Enabled: true, Endpoint: "https://collector.example.com:4318", CABundleRef: bundled(),
			Metrics: &v1beta1.OpenTelemetryMetricsConfig{Enabled: true},
		}},
	}
	_, err := s.Env.Servers.ToolhiveV1beta1().MCPTelemetryConfigs(s.Name).Create(t.Context(), config, metav1.CreateOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
}

func withHeader(t *testing.T, s scene) {
	t.Helper()
	config := &v1beta1.MCPExternalAuthConfig{
		ObjectMeta: metav1.ObjectMeta{Name: shared},
		Spec: v1beta1.MCPExternalAuthConfigSpec{
			Type: v1beta1.ExternalAuthTypeHeaderInjection,
			HeaderInjection: &v1beta1.HeaderInjectionConfig{
				HeaderName: "X-Token", ValueSecretRef: v1beta1.SecretKeyRef{Name: "token", Key: "value"},
			},
		},
	}
	_, err := s.Env.Servers.ToolhiveV1beta1().MCPExternalAuthConfigs(s.Name).Create(t.Context(), config, metav1.CreateOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
}

func revising(change func(*v1beta1.InlineOIDCSharedConfig)) func(*testing.T, scene) {
	return func(t *testing.T, s scene) {
		t.Helper()
		s.revise(t, func(config *v1beta1.MCPOIDCConfig) { change(config.Spec.Inline) })
	}
}

// addKey adds a key to the ConfigMap with certificate authorities that nothing refers to.
func addKey(t *testing.T, s scene) {
	t.Helper()
	_, err := s.Core.CoreV1().ConfigMaps(s.Name).
		Patch(t.Context(), bundleName, types.MergePatchType, []byte(`{"data":{"other.crt":"other"}}`), metav1.PatchOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
}

// TestHashFollows lets another operator record a hash in the status of an issuer, for a change that no proxy reads. The MCPServer's
// status follows, by one write, and nothing else does.
func TestHashFollows(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Operate(t, foreign)
	withIssuer(t, s)
	s.judge(t, metav1.ConditionTrue, 1, "first")
	s.settled(t, harness.HTTPServer(web, authenticated))
	pods, mark := s.pods(t), s.Mark(t)
	revising(func(inline *v1beta1.InlineOIDCSharedConfig) { inline.ProtectedResourceAllowPrivateIP = true })(t, s)
	s.AwaitStatus(t, web, harness.Expectation{
		Condition: v1beta1.ConditionOIDCConfigRefValidated, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonOIDCConfigRefValid,
		Message: []string{"protectedResourceAllowPrivateIP"},
	})
	edited := s.Mark(t)
	s.judge(t, metav1.ConditionTrue, 2, "second")
	s.AwaitServer(t, web, "follows the hash", func(server *v1beta1.MCPServer) error {
		if server.Status.OIDCConfigHash != "second" {
			return fmt.Errorf("it is %q", server.Status.OIDCConfigHash)
		}
		return nil
	})
	s.expectWritten(t, web, mark, harness.WriteCount{})
	if n := harness.CountWrites(web, s.Writes(t, edited))["status"]; n != 1 {
		t.Errorf("the status was written %d times", n)
	}
	if fmt.Sprint(pods) != fmt.Sprint(s.pods(t)) {
		t.Errorf("pods have changed from %v to %v", pods, s.pods(t))
	}
}

const (
	// unrelated ConfigMaps are changed so often each.
	unrelated, changes = 20, 50
)

// TestUnrelatedConfigMaps changes ConfigMaps that no MCPServer refers to. They wake no MCPServer, and cause no request.
func TestUnrelatedConfigMaps(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.Operate(t, foreign)
	withAuthServer(t, s)
	s.settled(t, harness.HTTPServer(web, loggingIn))
	const queue = `name="mcpserver"`
	added := func() float64 {
		count, err := harness.Metric(t.Context(), p, "workqueue_adds_total", queue)
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	before, mark := added(), s.Mark(t)
	var events atomic.Int64
	var group errgroup.Group
	for i := range unrelated {
		group.Go(func() error {
			name := fmt.Sprintf("unrelated-%d", i)
			configMaps := s.Core.CoreV1().ConfigMaps(s.Name)
			_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			for change := 1; err == nil && change < changes; change++ {
				body := fmt.Appendf(nil, `{"data":{"ca.crt":"%d"}}`, change)
				_, err = configMaps.Patch(t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: harness.Author})
				events.Add(1)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	s.Quiet(t, mark, harness.Calm)
	if after := added(); after != before {
		t.Errorf("%d changes of ConfigMaps have woken MCPServers %v times", events.Load(), after-before)
	}
	// The one that it refers to does.
	s.bundle(t, certificate(t, "second"))
	harness.Eventually(t, "the MCPServer is woken", func(context.Context) error {
		if added() == before {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	s.AwaitSettled(t, web)
}
