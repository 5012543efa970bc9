// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"net/http"
	"net/url"
)

// Names of RFC 8693.
const (
	grantTokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeAccessToken    = "urn:ietf:params:oauth:token-type:access_token"
)

// Exchange exchanges the tokens of an issuer for others of the same subject, with the audience that its client asks for
// (RFC 8693). It has one client.
type Exchange struct {
	Issuer                 *Issuer
	ClientID, ClientSecret string
}

// ServeHTTP implements http.Handler.
func (e *Exchange) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, secret, ok := r.BasicAuth()
	// RFC 6749 has both escaped before they are encoded.
	if !ok || id != url.QueryEscape(e.ClientID) || secret != url.QueryEscape(e.ClientSecret) {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	form := func(name string) string { return r.PostFormValue(name) }
	if r.Method != http.MethodPost || form("grant_type") != grantTokenExchange || form("audience") == "" ||
		form("subject_token_type") != typeAccessToken {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_request"})
		return
	}
	subject, err := e.Issuer.Verify(form("subject_token"))
	if err != nil {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": err.Error()})
		return
	}
	token, err := e.Issuer.Token(subject.Subject, form("audience"))
	if err != nil {
		answer(w, http.StatusInternalServerError, map[string]string{"error": "server_error", "error_description": err.Error()})
		return
	}
	answer(w, http.StatusOK, map[string]any{
		"access_token": token, "issued_token_type": typeAccessToken, "token_type": "Bearer", "expires_in": int(lifetime.Seconds()),
	})
}
