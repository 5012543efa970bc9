// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/oauth2"
)

// TestLogin goes through the authorization code flow: with all that belongs to it, and without one thing after the other.
func TestLogin(t *testing.T) {
	t.Parallel()
	login := &Login{
		ClientID: "client", ClientSecret: "secret", RedirectURI: "http://127.0.0.1/back", Subject: "alice", Audience: "backend",
	}
	server := httptest.NewServer(login)
	t.Cleanup(server.Close)
	login.Issuer = NewIssuer(t, server.URL)
	config := func() *oauth2.Config {
		return &oauth2.Config{
			ClientID: login.ClientID, ClientSecret: login.ClientSecret, RedirectURL: login.RedirectURI, Scopes: []string{"openid"},
			Endpoint: oauth2.Endpoint{
				AuthURL: server.URL + "/authorize", TokenURL: server.URL + "/token", AuthStyle: oauth2.AuthStyleInParams,
			},
		}
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	authorize := func(config *oauth2.Config, options ...oauth2.AuthCodeOption) (code string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.AuthCodeURL("state", options...), nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := browser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		back, err := response.Location()
		if err != nil {
			return ""
		}
		if back.Query().Get("state") != "state" || !strings.HasPrefix(back.String(), login.RedirectURI+"?") {
			t.Errorf("the user is sent to %s", back)
		}
		return back.Query().Get("code")
	}
	verifier := oauth2.GenerateVerifier()
	challenge := oauth2.S256ChallengeOption(verifier)
	code := authorize(config(), challenge, oauth2.SetAuthURLParam("nonce", "once"))
	got, err := config().Exchange(t.Context(), code, oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	identity, _ := got.Extra("id_token").(string)
	for token, audience := range map[string]string{got.AccessToken: "backend", identity: "client"} {
		if claims, err := login.Verify(token); err != nil || claims.Subject != "alice" || !claims.Audience.Contains(audience) {
			t.Errorf("a token is %+v, %v, want one for %s", claims, err, audience)
		}
	}
	var more struct {
		Nonce string `json:"nonce"`
	}
	parsed, err := jwt.ParseSigned(identity, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	if err := parsed.UnsafeClaimsWithoutVerification(&more); err != nil || more.Nonce != "once" {
		t.Errorf("the nonce is %q, %v", more.Nonce, err)
	}

	if _, err := config().Exchange(t.Context(), code, oauth2.VerifierOption(verifier)); err == nil {
		t.Error("a code was taken twice")
	}
	if _, err := config().Exchange(t.Context(), authorize(config(), challenge), oauth2.VerifierOption(oauth2.GenerateVerifier())); err == nil {
		t.Error("a code was taken from someone else")
	}
	other := config()
	other.ClientSecret = "guessed"
	if _, err := other.Exchange(t.Context(), authorize(config(), challenge), oauth2.VerifierOption(verifier)); err == nil {
		t.Error("a secret was taken that is none")
	}
	for what, change := range map[string]func(*oauth2.Config){
		"client": func(c *oauth2.Config) { c.ClientID = "other" }, "address": func(c *oauth2.Config) { c.RedirectURL += "/there" },
		"scope": func(c *oauth2.Config) { c.Scopes = nil },
	} {
		wrong := config()
		change(wrong)
		if authorize(wrong, challenge) != "" {
			t.Errorf("a code was given for a wrong %s", what)
		}
	}
	if authorize(config()) != "" {
		t.Error("a code was given without a challenge")
	}
}
