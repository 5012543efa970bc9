// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/peers"
)

// TestTokens has clients with and without tokens call an MCPServer that refers to an MCPOIDCConfig, whose issuer has a
// certificate by an authority of its own and a private address, and to an MCPAuthzConfig that permits one user a tool. Then the
// proxy may not talk to private addresses any more.
func TestTokens(t *testing.T) {
	t.Parallel()
	ns := operated(t)
	issuer := issue(t, ns)
	createPolicy(t, ns, `permit(principal == Client::"alice", action == Action::"call_tool", resource == Tool::"echo");`)
	server := serve(t, ns, v1beta1.TransportStreamableHTTP, byTokens, policed)
	if err := (harness.Expectation{
		Condition: v1beta1.ConditionOIDCConfigRefValidated, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonOIDCConfigRefValid,
	}).Missing(server); err != nil {
		t.Error(err)
	}
	stranger := peers.NewIssuer(t, issuer.URL())
	for name, token := range map[string]string{
		"no token":                 "",
		"something else":           "secret",
		"a token for others":       token(t, issuer.Token, "alice", "others"),
		"a token by a stranger":    token(t, stranger.Token, "alice", audience),
		"a token that has expired": token(t, issuer.Expired, "alice", audience),
	} {
		isDenied(t, name, dial(t, ns, token).Echo(t.Context(), "hello"), http.StatusUnauthorized)
	}
	client := dial(t, ns, token(t, issuer.Token, "alice", audience))
	gets(t, "the right token", client.Echo(t.Context(), "hello"), "hello")
	other := dial(t, ns, token(t, issuer.Token, "bob", audience))
	isDenied(t, "the token of another user", other.Echo(t.Context(), "hello"), http.StatusForbidden)

	edit(t, toolhive(ns).MCPOIDCConfigs(ns.Name), "tokens", func(config *v1beta1.MCPOIDCConfig) {
		config.Spec.Inline.JWKSAllowPrivateIP = false
	})
	inEffect(t, ns, server.Status.OIDCConfigHash, func(s v1beta1.MCPServerStatus) string { return s.OIDCConfigHash })
	isDenied(t, "an issuer that may not be asked", client.Echo(t.Context(), "hello"), http.StatusUnauthorized)
}
