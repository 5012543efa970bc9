// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// authServerURL is what clients know the authorization server by.
const authServerURL = "https://mcp.example.com"

// loggingIn gives an MCPServer an authorization server of its own.
func loggingIn(server *v1beta1.MCPServer) {
	server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: shared, Audience: authServerURL, ResourceURL: authServerURL}
	server.Spec.AuthServerRef = &v1beta1.AuthServerRef{Kind: "MCPExternalAuthConfig", Name: shared}
}

// publishAuthServer makes the configuration of an authorization server, whose identity provider is behind the certificate
// authorities of the user's ConfigMap.
func (s scene) publishAuthServer(t *testing.T) {
	t.Helper()
	config := &v1beta1.MCPExternalAuthConfig{
		ObjectMeta: metav1.ObjectMeta{Name: shared},
		Spec: v1beta1.MCPExternalAuthConfigSpec{
			Type: v1beta1.ExternalAuthTypeEmbeddedAuthServer,
			EmbeddedAuthServer: &v1beta1.EmbeddedAuthServerConfig{
				Issuer:               authServerURL,
				SigningKeySecretRefs: []v1beta1.SecretKeyRef{{Name: "keys", Key: "key.pem"}},
				HMACSecretRefs:       []v1beta1.SecretKeyRef{{Name: "keys", Key: "hmac"}},
				UpstreamProviders: []v1beta1.UpstreamProviderConfig{{
					Name: "company", Type: v1beta1.UpstreamProviderTypeOIDC,
					OIDCConfig: &v1beta1.OIDCUpstreamConfig{
						IssuerURL: "https://idp.example.com", ClientID: "web", RedirectURI: authServerURL + "/oauth/callback",
						ClientSecretRef: &v1beta1.SecretKeyRef{Name: "keys", Key: "client"}, Scopes: []string{"openid"},
						CABundleRef: bundled(),
					},
				}},
			},
		},
	}
	_, err := s.Env.Servers.ToolhiveV1beta1().MCPExternalAuthConfigs(s.Name).Create(t.Context(), config, metav1.CreateOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
}

// bundled refers to the certificate authorities of the user's ConfigMap.
func bundled() *v1beta1.CABundleSource {
	return &v1beta1.CABundleSource{ConfigMapRef: &v1beta1.ConfigMapKeySelector{Name: bundleName, Key: "ca.crt"}}
}

// certificate is one of an authority, as PEM.
func certificate(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: encoded}))
}
