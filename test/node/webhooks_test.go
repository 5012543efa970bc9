// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1alpha1"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/peers"
)

// shout is a mutating webhook that has clients say everything louder.
func shout(r peers.WebhookRequest) peers.Verdict {
	if r.MCPRequest.Method != "tools/call" || r.MCPRequest.Params.Name != "echo" {
		return peers.Verdict{Allowed: true}
	}
	text := strings.ToUpper(fmt.Sprint(r.MCPRequest.Params.Arguments["text"]))
	return peers.Verdict{Allowed: true, Patches: []peers.Patch{{Op: "replace", Path: "/mcp_request/params/arguments/text", Value: text}}}
}

// hush is a validating webhook that denies calls of the tool identity, and those that say HUSH: it is asked after the mutating.
func hush(r peers.WebhookRequest) peers.Verdict {
	said := r.MCPRequest.Params
	return peers.Verdict{Allowed: r.MCPRequest.Method != "tools/call" || said.Name != "identity" && said.Arguments["text"] != "HUSH"}
}

// TestWebhooks has a proxy ask two webhooks, which want its requests signed. Then the key is replaced, which the proxy notices
// without a restart.
func TestWebhooks(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := operated(t)
	trust(t, ns)
	const oldKey, newKey = "the first key", "the second key"
	signing := secret(t, ns, "signing", "key", oldKey)
	mutating, validating := peers.NewWebhook(oldKey, shout), peers.NewWebhook(oldKey, hush)
	handler := http.NewServeMux()
	handler.Handle("/shout", mutating)
	handler.Handle("/hush", validating)
	listener, _ := hear(t)
	url := serveTLS(t, listener, handler)
	webhook := func(name string) []v1beta1.WebhookSpec {
		return []v1beta1.WebhookSpec{{
			Name: name, URL: url + "/" + name, HMACSecretRef: signing, FailurePolicy: v1beta1.WebhookFailurePolicyFail,
			TLSConfig: &v1beta1.WebhookTLSConfig{CASecretRef: &v1beta1.SecretKeyRef{Name: authority, Key: certificate}},
		}}
	}
	create(t, ns.Env.Servers.ToolhiveV1alpha1().MCPWebhookConfigs(ns.Name).Create, &v1alpha1.MCPWebhookConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "webhooks"},
		Spec:       v1beta1.MCPWebhookConfigSpec{Mutating: webhook("shout"), Validating: webhook("hush")},
	})
	server := serve(t, ns, v1beta1.TransportStreamableHTTP, func(server *v1beta1.MCPServer) {
		server.Spec.WebhookConfigRef = &v1beta1.WebhookConfigRef{Name: "webhooks"}
	})
	if err := (harness.Expectation{
		Condition: v1beta1.ConditionWebhookConfigValidated, Status: metav1.ConditionTrue,
		Reason: reasonSince(t, "0.47.0", v1beta1.ReasonWebhookConfigValid),
	}).Missing(server); err != nil {
		t.Error(err)
	}
	client := dial(t, ns, "")
	gets(t, "a call that is changed", client.Echo(t.Context(), "hello"), "HELLO")
	isDenied(t, "a tool", client.Call(t.Context(), "identity", nil), http.StatusForbidden)
	isDenied(t, "a text, as it was changed", client.Echo(t.Context(), "hush"), http.StatusForbidden)
	if count := mutating.Refused() + validating.Refused(); count > 0 {
		t.Errorf("%d requests were not signed well", count)
	}

	before := proxyPod(t, ns)
	mutating.Want(newKey)
	validating.Want(newKey)
	if outcome := client.Echo(t.Context(), "hello"); outcome.Err == nil || mutating.Refused() == 0 {
		t.Errorf("a call is answered that the webhooks have refused: %v", outcome)
	}
	edit(t, ns.Core.CoreV1().Secrets(ns.Name), signing.Name, func(secret *corev1.Secret) {
		secret.Data[signing.Key] = []byte(newKey)
	})
	touch(t, ns, before)
	harness.Eventually(t, "the proxy signs by the new key", func(ctx context.Context) error {
		switch outcome := client.Echo(ctx, "hello"); {
		case outcome.Err != nil:
			return outcome.Err
		case outcome.Text != "HELLO":
			return errors.New("the call was not changed: " + outcome.Text)
		}
		return nil
	})
	if after := proxyPod(t, ns); after.UID != before.UID {
		t.Errorf("the proxy was replaced: %s by %s", before.Name, after.Name)
	}
	noRestarts(t, ns)
}

// touch changes a pod, so that its kubelet writes new values of Secrets at once; otherwise it looks within a minute.
func touch(t *testing.T, ns *harness.Namespace, pod *corev1.Pod) {
	t.Helper()
	_, err := ns.Core.CoreV1().Pods(ns.Name).Patch(t.Context(), pod.Name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"example.com/look-at-me":"now"}}}`), metav1.PatchOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
}
