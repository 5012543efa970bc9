// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/oauth2"
)

// Login is an identity provider: an issuer at which one user logs in at once, by the authorization code flow with PKCE
// (OpenID Connect Core, RFC 7636). It has one client.
type Login struct {
	*Issuer

	ClientID, ClientSecret, RedirectURI string
	// Subject is the user, and Audience that of the access tokens.
	Subject, Audience string

	mu    sync.Mutex
	codes map[string]authorization
}

// authorization is what a code stands for.
type authorization struct{ challenge, nonce string }

// ServeHTTP implements http.Handler.
func (l *Login) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/authorize":
		l.authorize(w, r)
	case "/token":
		l.token(w, r)
	default:
		l.Issuer.ServeHTTP(w, r)
	}
}

func (l *Login) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("client_id") != l.ClientID || query.Get("redirect_uri") != l.RedirectURI || query.Get("response_type") != "code" ||
		!slices.Contains(strings.Fields(query.Get("scope")), "openid") ||
		query.Get("code_challenge_method") != "S256" || query.Get("code_challenge") == "" {
		http.Error(w, "invalid_request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	l.mu.Lock()
	if l.codes == nil {
		l.codes = map[string]authorization{}
	}
	l.codes[code] = authorization{challenge: query.Get("code_challenge"), nonce: query.Get("nonce")}
	l.mu.Unlock()
	http.Redirect(w, r, l.RedirectURI+"?"+url.Values{"code": {code}, "state": {query.Get("state")}}.Encode(), http.StatusFound)
}

func (l *Login) token(w http.ResponseWriter, r *http.Request) {
	form := func(name string) string { return r.PostFormValue(name) }
	if form("client_id") != l.ClientID || form("client_secret") != l.ClientSecret {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	l.mu.Lock()
	granted, ok := l.codes[form("code")]
	delete(l.codes, form("code"))
	l.mu.Unlock()
	if !ok || r.Method != http.MethodPost || form("grant_type") != "authorization_code" || form("redirect_uri") != l.RedirectURI ||
		oauth2.S256ChallengeFromVerifier(form("code_verifier")) != granted.challenge {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	now := time.Now()
	identity, err := l.sign(jwt.Claims{
		Issuer: l.url, Subject: l.Subject, Audience: jwt.Audience{l.ClientID},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(lifetime)),
	}, map[string]any{"nonce": granted.nonce})
	if err != nil {
		answer(w, http.StatusInternalServerError, map[string]string{"error": "server_error", "error_description": err.Error()})
		return
	}
	access, err := l.Token(l.Subject, l.Audience)
	if err != nil {
		answer(w, http.StatusInternalServerError, map[string]string{"error": "server_error", "error_description": err.Error()})
		return
	}
	answer(w, http.StatusOK, map[string]any{
		"access_token": access, "id_token": identity, "token_type": "Bearer", "expires_in": int(lifetime.Seconds()),
	})
}
