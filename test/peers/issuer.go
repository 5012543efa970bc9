// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// lifetime of a token, and the tolerance between clocks.
const (
	lifetime = time.Hour
	leeway   = time.Minute
)

// Issuer signs tokens, and publishes its keys as OpenID Connect Discovery has it. Its URL is that of the root of its server.
type Issuer struct {
	url string
	key jose.JSONWebKey
}

// NewIssuer returns an issuer with a key of its own, which is to be served at the URL.
func NewIssuer(t testing.TB, url string) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &Issuer{url: url, key: jose.JSONWebKey{Key: key, KeyID: "first", Algorithm: string(jose.ES256), Use: "sig"}}
}

// URL of the issuer.
func (i *Issuer) URL() string { return i.url }

// ServeHTTP implements http.Handler: the discovery document, and the keys.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer(w, http.StatusOK, map[string]any{
			"issuer": i.url, "jwks_uri": i.url + "/keys", "token_endpoint": i.url + "/token",
			"authorization_endpoint":                i.url + "/authorize",
			"response_types_supported":              []string{"code"},
			"subject_types_supported":               []string{"public"},
			"id_token_signing_alg_values_supported": []string{string(jose.ES256)},
		})
	case "/keys":
		answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{i.key.Public()}})
	default:
		http.NotFound(w, r)
	}
}

// Token returns a token for the subject and the audience that holds for an hour.
func (i *Issuer) Token(subject, audience string) (string, error) {
	now := time.Now()
	return i.sign(jwt.Claims{
		Issuer: i.url, Subject: subject, Audience: jwt.Audience{audience},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(lifetime)),
	})
}

// Expired returns a token that has ceased to hold an hour ago.
func (i *Issuer) Expired(subject, audience string) (string, error) {
	now := time.Now()
	return i.sign(jwt.Claims{
		Issuer: i.url, Subject: subject, Audience: jwt.Audience{audience},
		IssuedAt: jwt.NewNumericDate(now.Add(-2 * lifetime)), Expiry: jwt.NewNumericDate(now.Add(-lifetime)),
	})
}

func (i *Issuer) sign(claims jwt.Claims, more ...any) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	builder := jwt.Signed(signer).Claims(claims)
	for _, m := range more {
		builder = builder.Claims(m)
	}
	return builder.Serialize()
}

// Verify returns the claims of a token that this issuer has signed and that holds.
func (i *Issuer) Verify(token string) (claims jwt.Claims, err error) {
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return claims, fmt.Errorf("no token: %w", err)
	}
	if err := parsed.Claims(i.key.Public(), &claims); err != nil {
		return claims, fmt.Errorf("a token of another issuer: %w", err)
	}
	return claims, claims.ValidateWithLeeway(jwt.Expected{Issuer: i.url, Time: time.Now()}, leeway)
}
