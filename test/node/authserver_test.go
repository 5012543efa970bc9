// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/mcpclient"
	"github.com/freehold-dev/freehold/test/peers"
)

// loginName is the name of the configurations, and of the Secret, of an authorization server.
const loginName = "login"

// gate is an Ingress of a kind: it serves an MCPServer with a certificate at an address of its own.
type gate struct {
	// url has no path.
	url string
	// transport reaches it as its clients do, and trusts its certificate.
	transport *http.Transport
}

// openGate opens one for the MCPServer that is served.
func openGate(t *testing.T, ns *harness.Namespace) *gate {
	t.Helper()
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "proxy"})
			r.SetXForwarded()
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			service, err := ns.Core.CoreV1().Services(ns.Name).Get(ctx, "mcp-"+served+"-proxy", metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return machine.DialContext(ctx, network, net.JoinHostPort(service.Spec.ClusterIP, fmt.Sprint(service.Spec.Ports[0].Port)))
		}},
	}
	listener, _ := hear(t)
	authority, err := os.ReadFile(env.Cluster.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return &gate{url: serveTLS(t, listener, proxy), transport: &http.Transport{
		DialContext: machine.DialContext, TLSClientConfig: &tls.Config{RootCAs: roots},
	}}
}

// dial returns a client of the MCPServer behind the gate.
func (g *gate) dial(t *testing.T, token string) *mcpclient.Direct {
	t.Helper()
	return mcpclient.DialURL(t, g.transport.Clone(), g.url+"/mcp", token)
}

// user returns a client whose user logs in by browser when the server asks for a token. It registers itself, without a secret.
func (g *gate) user(t *testing.T) *mcpclient.Direct {
	t.Helper()
	const redirect = "http://127.0.0.1:8765/callback"
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "freehold-test-client", RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}},
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return g.browse(ctx, args.URL, redirect)
		},
		Client: &http.Client{Transport: g.transport},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := g.dial(t, "")
	client.Login = handler
	return client
}

// browse follows an authorization to where it leads back to the client, as a browser does.
func (g *gate) browse(ctx context.Context, begin, redirect string) (*auth.AuthorizationResult, error) {
	cookies, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	browser := &http.Client{Transport: g.transport, Jar: cookies, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), redirect) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, begin, nil)
	if err != nil {
		return nil, err
	}
	response, err := browser.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	back, err := response.Location()
	if err != nil {
		return nil, fmt.Errorf("%s answers %s: %w", response.Request.URL, response.Status, err)
	}
	query := back.Query()
	if query.Has("error") {
		return nil, fmt.Errorf("the login ended with %s", back)
	}
	return &auth.AuthorizationResult{Code: query.Get("code"), State: query.Get("state"), Iss: query.Get("iss")}, nil
}

// signedBy returns the token with which a client has logged in, and the ID of the key that signed it.
func signedBy(t *testing.T, client *mcpclient.Direct) (key, token string) {
	t.Helper()
	source, err := client.Login.TokenSource(t.Context())
	if err != nil || source == nil {
		t.Fatalf("the client has not logged in: %v", err)
	}
	got, err := source.Token()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jose.ParseSignedCompact(got.AccessToken, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Signatures[0].Header.KeyID, got.AccessToken
}

// signingKey makes a key, as openssl genpkey writes one.
func signingKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// offerLogin makes an authorization server for the MCPServer behind the gate, at which users of the identity provider log in.
func offerLogin(t *testing.T, ns *harness.Namespace, g *gate, provider *peers.Login) {
	t.Helper()
	create(t, ns.Core.CoreV1().Secrets(ns.Name).Create, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: loginName},
		StringData: map[string]string{
			"first.pem": signingKey(t), "second.pem": signingKey(t), "hmac": rand.Text() + rand.Text(), "secret": provider.ClientSecret,
		},
	})
	create(t, toolhive(ns).MCPExternalAuthConfigs(ns.Name).Create, &v1beta1.MCPExternalAuthConfig{
		ObjectMeta: metav1.ObjectMeta{Name: loginName},
		Spec: v1beta1.MCPExternalAuthConfigSpec{
			Type: v1beta1.ExternalAuthTypeEmbeddedAuthServer,
			EmbeddedAuthServer: &v1beta1.EmbeddedAuthServerConfig{
				Issuer:               g.url,
				SigningKeySecretRefs: []v1beta1.SecretKeyRef{{Name: loginName, Key: "first.pem"}},
				HMACSecretRefs:       []v1beta1.SecretKeyRef{{Name: loginName, Key: "hmac"}},
				UpstreamProviders: []v1beta1.UpstreamProviderConfig{{
					Name: "company", Type: v1beta1.UpstreamProviderTypeOIDC,
					OIDCConfig: &v1beta1.OIDCUpstreamConfig{
						IssuerURL: provider.URL(), ClientID: provider.ClientID, RedirectURI: provider.RedirectURI,
						ClientSecretRef: &v1beta1.SecretKeyRef{Name: loginName, Key: "secret"},
						CABundleRef:     trusted(), AllowPrivateIPs: true,
					},
				}},
			},
		},
	})
	create(t, toolhive(ns).MCPOIDCConfigs(ns.Name).Create, &v1beta1.MCPOIDCConfig{
		ObjectMeta: metav1.ObjectMeta{Name: loginName},
		Spec: v1beta1.MCPOIDCConfigSpec{
			Type: v1beta1.MCPOIDCConfigTypeInline, Inline: &v1beta1.InlineOIDCSharedConfig{
				// The proxy asks its own address for metadata. It has the keys all the same, but would try three times.
				Issuer: g.url, CABundleRef: trusted(), JWKSAllowPrivateIP: true,
			},
		},
	})
}

// TestAuthServer has a user log in to an MCPServer that has an authorization server of its own, as clients of MCP do: the client is
// refused, finds the server's metadata, registers itself, sends the user to the identity provider, comes back with a code, and
// calls with the token that it gets for that. The backend gets the identity provider's token instead. Nobody else is let in. Then the
// authorization server gets another key to sign with, keeps the first to check tokens, and the backend is to get no token any more:
// the proxy is replaced once, earlier tokens hold, and new ones are signed by the new key.
func TestAuthServer(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := operated(t)
	trust(t, ns)
	g := openGate(t, ns)
	listener, address := hear(t)
	provider := &peers.Login{
		Issuer: peers.NewIssuer(t, "https://"+address), ClientID: "proxy", ClientSecret: "a secret with + and %",
		RedirectURI: g.url + "/oauth/callback", Subject: "alice", Audience: "backend",
	}
	serveTLS(t, listener, provider)
	offerLogin(t, ns, g, provider)
	server := serve(t, ns, v1beta1.TransportStreamableHTTP, func(server *v1beta1.MCPServer) {
		server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: loginName, Audience: g.url, ResourceURL: g.url}
		server.Spec.AuthServerRef = &v1beta1.AuthServerRef{Kind: "MCPExternalAuthConfig", Name: loginName}
	})
	if err := (harness.Expectation{
		Condition: v1beta1.ConditionAuthServerRefValidated, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonAuthServerRefValid,
	}).Missing(server); err != nil {
		t.Error(err)
	}

	alice := g.user(t)
	gets(t, "who has logged in", alice.Echo(t.Context(), "hello"), "hello")
	upstream := strings.TrimPrefix(headersOf(t, alice).Get("Authorization"), "Bearer ")
	if claims, err := provider.Verify(upstream); err != nil || claims.Subject != provider.Subject || !claims.Audience.Contains(provider.Audience) {
		t.Errorf("the backend got %q, which is for %+v, %v", upstream, claims, err)
	}
	first, issued := signedBy(t, alice)
	gets(t, "who has the token", g.dial(t, issued).Echo(t.Context(), "hello"), "hello")
	for who, token := range map[string]string{
		"no token":                         "",
		"a token of the identity provider": token(t, provider.Token, "alice", g.url),
		"a token of a stranger":            token(t, peers.NewIssuer(t, g.url).Token, "alice", g.url),
		"a token that was changed":         issued[:len(issued)-8] + "AAAAAAAA",
	} {
		isDenied(t, who, g.dial(t, token).Echo(t.Context(), "hello"), http.StatusUnauthorized)
	}

	deployments := ns.Core.AppsV1().Deployments(ns.Name)
	before, err := deployments.Get(t.Context(), served, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	edit(t, toolhive(ns).MCPExternalAuthConfigs(ns.Name), loginName, func(config *v1beta1.MCPExternalAuthConfig) {
		config.Spec.EmbeddedAuthServer.SigningKeySecretRefs = []v1beta1.SecretKeyRef{
			{Name: loginName, Key: "second.pem"}, {Name: loginName, Key: "first.pem"},
		}
		config.Spec.EmbeddedAuthServer.DisableUpstreamTokenInjection = true
	})
	inEffect(t, ns, server.Status.AuthServerConfigHash, func(s v1beta1.MCPServerStatus) string { return s.AuthServerConfigHash })
	ns.AwaitSettled(t, served)
	after, err := deployments.Get(t.Context(), served, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.Generation != before.Generation+1 {
		t.Errorf("the Deployment was changed %d times, want once", after.Generation-before.Generation)
	}
	earlier := g.dial(t, issued)
	gets(t, "who has a token by the key before", earlier.Echo(t.Context(), "again"), "again")
	if got := headersOf(t, earlier).Get("Authorization"); got != "" {
		t.Errorf("the backend got %q, want nothing", got)
	}
	bob := g.user(t)
	gets(t, "who logs in now", bob.Echo(t.Context(), "again"), "again")
	if second, _ := signedBy(t, bob); second == first {
		t.Errorf("the token is signed by the key before, %s", second)
	}
}
