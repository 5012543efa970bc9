// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1alpha1"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/mcpclient"
	"github.com/freehold-dev/freehold/test/peers"
)

// enforcing is the first release of ToolHive whose proxyrunner enforces what these tests ask for. Of earlier ones they expect the
// leak: so it shows that each test could fail, and that the release is the right one.
const enforcing = "0.63.0"

// reasonSince returns the reason of a condition whose feature the proxyrunner enforces whole since a release.
func reasonSince(t *testing.T, release, reason string) string {
	t.Helper()
	if !harness.ToolHiveAtLeast(t, release) {
		return v1beta1.ReasonRunnerEnforcesLess
	}
	return reason
}

// TestListsOfServersThatCompressAreFiltered hides tools of an MCP server that compresses its answers for clients that accept gzip, as
// those of this process do: the tools are not listed, and calls of them are refused. Earlier proxyrunners list them.
func TestListsOfServersThatCompressAreFiltered(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	listed := []string{"echo"}
	if !harness.ToolHiveAtLeast(t, enforcing) {
		listed = []string{"echo", "headers", "identity"}
	}
	for by, hide := range map[string]func(*testing.T, *harness.Namespace) harness.Change{
		"tool filter": func(t *testing.T, ns *harness.Namespace) harness.Change {
			create(t, toolhive(ns).MCPToolConfigs(ns.Name).Create, &v1beta1.MCPToolConfig{
				ObjectMeta: metav1.ObjectMeta{Name: "tools"}, Spec: v1beta1.MCPToolConfigSpec{ToolsFilter: []string{"echo"}},
			})
			return func(server *v1beta1.MCPServer) { server.Spec.ToolConfigRef = &v1beta1.ToolConfigRef{Name: "tools"} }
		},
		"authorization": func(t *testing.T, ns *harness.Namespace) harness.Change {
			createPolicy(t, ns, permitting("echo"))
			return policed
		},
	} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			ns := operated(t)
			serve(t, ns, v1beta1.TransportStreamableHTTP, hide(t, ns), harness.Environment("MCP_COMPRESS", "true"))
			client := dial(t, ns, "")
			list := client.List(t.Context())
			names := mcpclient.Names(list.Tools)
			slices.Sort(names)
			if list.Err != nil || !slices.Equal(names, listed) {
				t.Errorf("the list is %v, want %v", list, listed)
			}
			gets(t, "echo", client.Echo(t.Context(), "hello"), "hello")
			if outcome := client.Call(t.Context(), "identity", nil); outcome.Err == nil {
				t.Errorf("identity is hidden, and was called: %v", outcome)
			}
		})
	}
}

// TestWebhookThatCannotBeAskedDenies empties the key by which requests to a webhook are signed: the proxy cannot ask the webhook any
// more, and denies all calls, though the failurePolicy is ignore. Earlier proxyrunners let all calls pass.
func TestWebhookThatCannotBeAskedDenies(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := operated(t)
	trust(t, ns)
	signing := secret(t, ns, "signing", "key", "a key")
	listener, _ := hear(t)
	create(t, ns.Env.Servers.ToolhiveV1alpha1().MCPWebhookConfigs(ns.Name).Create, &v1alpha1.MCPWebhookConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "webhooks"},
		Spec: v1beta1.MCPWebhookConfigSpec{Validating: []v1beta1.WebhookSpec{{
			Name: "hush", URL: serveTLS(t, listener, peers.NewWebhook("a key", hush)), HMACSecretRef: signing,
			FailurePolicy: v1beta1.WebhookFailurePolicyIgnore,
			TLSConfig:     &v1beta1.WebhookTLSConfig{CASecretRef: &v1beta1.SecretKeyRef{Name: authority, Key: certificate}},
		}}},
	})
	serve(t, ns, v1beta1.TransportStreamableHTTP, func(server *v1beta1.MCPServer) {
		server.Spec.WebhookConfigRef = &v1beta1.WebhookConfigRef{Name: "webhooks"}
	})
	client := dial(t, ns, "")
	gets(t, "a call that the webhook allows", client.Echo(t.Context(), "hello"), "hello")
	isDenied(t, "a call that it denies", client.Call(t.Context(), "identity", nil), http.StatusForbidden)

	edit(t, ns.Core.CoreV1().Secrets(ns.Name), signing.Name, func(secret *corev1.Secret) { secret.Data[signing.Key] = []byte{} })
	touch(t, ns, proxyPod(t, ns))
	if !harness.ToolHiveAtLeast(t, enforcing) {
		harness.Eventually(t, "a call passes that the webhook denies", func(ctx context.Context) error {
			return client.Call(ctx, "identity", nil).Err
		})
		return
	}
	harness.Eventually(t, "a call is denied that the webhook allows", func(ctx context.Context) error {
		if outcome := client.Echo(ctx, "hello"); outcome.Err == nil || outcome.Code != http.StatusForbidden {
			return errors.New("got " + outcome.String())
		}
		return nil
	})
	isDenied(t, "a call that it denies, without the key", client.Call(t.Context(), "identity", nil), http.StatusForbidden)
}
