// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/mcpclient"
	"github.com/freehold-dev/freehold/test/peers"
)

// outgoing has an MCPServer refer to the MCPExternalAuthConfig outgoing.
func outgoing(server *v1beta1.MCPServer) {
	server.Spec.ExternalAuthConfigRef = &v1beta1.ExternalAuthConfigRef{Name: "outgoing"}
}

// headersOf returns the headers with which a call of the client reaches the backend.
func headersOf(t *testing.T, client *mcpclient.Direct) (header http.Header) {
	t.Helper()
	outcome := client.Call(t.Context(), "headers", nil)
	if outcome.Err != nil {
		t.Fatalf("no headers: %v", outcome)
	}
	if err := json.Unmarshal([]byte(outcome.Text), &header); err != nil {
		t.Fatal(err)
	}
	return header
}

// TestTokenExchange has a proxy exchange its clients' tokens for ones that are meant for the backend, and put these in the place
// of theirs, or into a header of their own. The exchange has no certificate: ToolHive's proxyrunner trusts none but public
// authorities there.
func TestTokenExchange(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := operated(t)
	issuer := issue(t, ns)
	listener, _ := hear(t)
	exchange := &peers.Exchange{Issuer: issuer, ClientID: "proxy", ClientSecret: "a secret with + and %"}
	url := peers.Serve(t, listener, nil, exchange)
	create(t, toolhive(ns).MCPExternalAuthConfigs(ns.Name).Create, &v1beta1.MCPExternalAuthConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "outgoing"},
		Spec: v1beta1.MCPExternalAuthConfigSpec{
			Type: v1beta1.ExternalAuthTypeTokenExchange,
			TokenExchange: &v1beta1.TokenExchangeConfig{
				TokenURL: url + "/token", Audience: "backend", ClientID: exchange.ClientID,
				ClientSecretRef: secret(t, ns, "exchange", "secret", exchange.ClientSecret),
			},
		},
	})
	server := serve(t, ns, v1beta1.TransportStreamableHTTP, byTokens, outgoing)
	original := token(t, issuer.Token, "alice", audience)
	client := dial(t, ns, original)
	exchanged := func(what, value string) {
		t.Helper()
		claims, err := issuer.Verify(strings.TrimPrefix(value, "Bearer "))
		if err != nil || claims.Subject != "alice" || !claims.Audience.Contains("backend") || claims.Audience.Contains(audience) {
			t.Errorf("%s: the backend got %q, which is for %v, %v", what, value, claims.Audience, err)
		}
	}
	exchanged("in the place of the client's", headersOf(t, client).Get("Authorization"))

	edit(t, toolhive(ns).MCPExternalAuthConfigs(ns.Name), "outgoing", func(config *v1beta1.MCPExternalAuthConfig) {
		config.Spec.TokenExchange.ExternalTokenHeaderName = "X-Backend-Token"
	})
	inEffect(t, ns, server.Status.ExternalAuthConfigHash, func(s v1beta1.MCPServerStatus) string { return s.ExternalAuthConfigHash })
	header := headersOf(t, client)
	exchanged("in a header of its own", header.Get("X-Backend-Token"))
	if header.Get("Authorization") != "Bearer "+original {
		t.Errorf("beside its own token the backend gets %q, want the client's", header.Get("Authorization"))
	}
}

// TestHeaderInjection has an MCPServer refer to a header that a VirtualMCPServer would add. A proxy does not, and is not
// replaced because of it; the MCPServer tells that it knows of it.
func TestHeaderInjection(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := operated(t)
	plain := serve(t, ns, v1beta1.TransportStreamableHTTP)
	before := proxyPod(t, ns)
	create(t, toolhive(ns).MCPExternalAuthConfigs(ns.Name).Create, &v1beta1.MCPExternalAuthConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "outgoing"},
		Spec: v1beta1.MCPExternalAuthConfigSpec{
			Type: v1beta1.ExternalAuthTypeHeaderInjection,
			HeaderInjection: &v1beta1.HeaderInjectionConfig{
				HeaderName: "X-Api-Key", ValueSecretRef: *secret(t, ns, "api", "key", "secret"),
			},
		},
	})
	ns.Edit(t, served, outgoing)
	inEffect(t, ns, plain.Status.ExternalAuthConfigHash, func(s v1beta1.MCPServerStatus) string { return s.ExternalAuthConfigHash })
	ns.AwaitStatus(t, served, harness.Expectation{
		Condition: v1beta1.ConditionExternalAuthConfigValidated, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonExternalAuthConfigValid,
	})
	ns.AwaitSettled(t, served)
	if after := proxyPod(t, ns); after.UID != before.UID {
		t.Errorf("the proxy was replaced: %s by %s", before.Name, after.Name)
	}
	if header := headersOf(t, dial(t, ns, "")); header.Get("X-Api-Key") != "" {
		t.Errorf("the backend gets the header %q", header.Get("X-Api-Key"))
	}
}
