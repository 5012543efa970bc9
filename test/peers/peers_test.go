// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
	coltracev1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// issuer serves an issuer at its URL.
func issuer(t *testing.T) *Issuer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it lasts as long as the test
	if err != nil {
		t.Fatal(err)
	}
	i := NewIssuer(t, "http://"+listener.Addr().String())
	if at := Serve(t, listener, nil, i); at != i.url {
		t.Fatalf("the issuer of %s is served at %s", i.url, at)
	}
	return i
}

// get reads JSON from the URL.
func get(t *testing.T, url string, into any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s", url, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// TestPublishedKeysVerifyTokens goes the way of whoever gets a token: from the issuer's URL to its keys.
func TestPublishedKeysVerifyTokens(t *testing.T) {
	i := issuer(t)
	var document struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	get(t, i.url+"/.well-known/openid-configuration", &document)
	if document.Issuer != i.url {
		t.Errorf("the issuer calls itself %s, want %s", document.Issuer, i.url)
	}
	var keys jose.JSONWebKeySet
	get(t, document.Keys, &keys)
	token, err := i.Token("alice", "tools")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	found := keys.Key(parsed.Headers[0].KeyID)
	if len(found) != 1 || !found[0].IsPublic() {
		t.Fatalf("the keys of that name are %+v, want a public one", found)
	}
	var claims jwt.Claims
	if err := parsed.Claims(found[0], &claims); err != nil {
		t.Fatal(err)
	}
	if claims.Issuer != i.url || claims.Subject != "alice" || !claims.Audience.Contains("tools") || claims.Expiry == nil {
		t.Errorf("the token has the claims %+v", claims)
	}
}

func TestVerify(t *testing.T) {
	i := issuer(t)
	stranger := NewIssuer(t, i.url)
	for name, tc := range map[string]struct {
		make func(subject, audience string) (string, error)
		want string
	}{
		"its own":                       {i.Token, ""},
		"its own, too late":             {i.Expired, "expired"},
		"one of a namesake":             {stranger.Token, "another issuer"},
		"one of an issuer of elsewhere": {NewIssuer(t, "https://elsewhere.invalid").Token, "another issuer"},
		"none":                          {func(string, string) (string, error) { return "secret", nil }, "no token"},
	} {
		token, err := tc.make("alice", "tools")
		if err != nil {
			t.Fatal(err)
		}
		_, err = i.Verify(token)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// post sends a body to a handler.
func post(t *testing.T, to http.Handler, body string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	request.Header = header
	recorder := httptest.NewRecorder()
	to.ServeHTTP(recorder, request)
	return recorder
}

func TestExchange(t *testing.T) {
	i := issuer(t)
	exchange := &Exchange{Issuer: i, ClientID: "the proxy", ClientSecret: "a+b"}
	subject, err := i.Token("alice", "tools")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := NewIssuer(t, i.url).Token("alice", "tools")
	if err != nil {
		t.Fatal(err)
	}
	form := func(token, audience string) string {
		return url.Values{
			"grant_type": {grantTokenExchange}, "subject_token": {token}, "subject_token_type": {typeAccessToken}, "audience": {audience},
		}.Encode()
	}
	for name, tc := range map[string]struct {
		secret, form string
		code         int
		err          string
	}{
		"a token":                     {"a+b", form(subject, "backend"), http.StatusOK, ""},
		"a wrong secret":              {"ab", form(subject, "backend"), http.StatusUnauthorized, "invalid_client"},
		"a token of another issuer":   {"a+b", form(foreign, "backend"), http.StatusBadRequest, "invalid_grant"},
		"a token for nobody":          {"a+b", form(subject, ""), http.StatusBadRequest, "invalid_request"},
		"something else than a token": {"a+b", "grant_type=client_credentials", http.StatusBadRequest, "invalid_request"},
	} {
		r := &http.Request{Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}}
		r.SetBasicAuth(url.QueryEscape("the proxy"), url.QueryEscape(tc.secret))
		recorder := post(t, exchange, tc.form, r.Header)
		var told struct {
			Token string `json:"access_token"`
			Type  string `json:"issued_token_type"`
			Error string `json:"error"`
		}
		if err := json.Unmarshal(recorder.Body.Bytes(), &told); err != nil {
			t.Fatal(err)
		}
		if recorder.Code != tc.code || told.Error != tc.err {
			t.Errorf("%s: the answer is %d %s, want %d %s", name, recorder.Code, told.Error, tc.code, tc.err)
		}
		if tc.err != "" {
			continue
		}
		claims, err := i.Verify(told.Token)
		if err != nil || claims.Subject != "alice" || !claims.Audience.Contains("backend") || told.Type != typeAccessToken {
			t.Errorf("%s: got a %s with %+v, %v", name, told.Type, claims, err)
		}
	}
}

func TestCollector(t *testing.T) {
	attribute := &commonv1.KeyValue{
		Key: "service.name", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: "proxy"}},
	}
	content, err := proto.Marshal(&coltracev1.ExportTraceServiceRequest{ResourceSpans: []*tracev1.ResourceSpans{{
		Resource:   &resourcev1.Resource{Attributes: []*commonv1.KeyValue{attribute}},
		ScopeSpans: []*tracev1.ScopeSpans{{Spans: []*tracev1.Span{{Name: "first"}, {Name: "second"}}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	writer := gzip.NewWriter(&zipped)
	if _, err := writer.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	for encoding, body := range map[string]string{"": string(content), "gzip": zipped.String()} {
		collector := &Collector{}
		header := http.Header{"Authorization": {"secret"}, "Content-Encoding": {encoding}}
		if recorder := post(t, collector, body, header); recorder.Code != http.StatusOK {
			t.Fatalf("encoding %q: %d %s", encoding, recorder.Code, recorder.Body)
		}
		resource := map[string]string{"service.name": "proxy"}
		want := []Span{{"first", resource, header}, {"second", resource, header}}
		if diff := cmp.Diff(want, collector.Spans()); diff != "" {
			t.Errorf("encoding %q (-want +got):\n%s", encoding, diff)
		}
	}
	collector := &Collector{}
	if recorder := post(t, collector, "\xff", http.Header{}); recorder.Code != http.StatusBadRequest || len(collector.Spans()) > 0 {
		t.Errorf("of something else it says %d, and has %v", recorder.Code, collector.Spans())
	}
}

// TestWebhook asks a webhook that changes calls of echo, and denies all else.
func TestWebhook(t *testing.T) {
	webhook := NewWebhook("key", func(r WebhookRequest) Verdict {
		if r.MCPRequest.Params.Name != "echo" {
			return Verdict{}
		}
		text := fmt.Sprint(r.MCPRequest.Params.Arguments["text"])
		return Verdict{Allowed: true, Patches: []Patch{{"replace", "/mcp_request/params/arguments/text", text + "!"}}}
	})
	ask := func(tool, key string) string {
		body := `{"version":"v0.1.0","uid":"1","mcp_request":{"method":"tools/call","params":{"name":"` + tool + `","arguments":{"text":"hi"}}}}`
		header := http.Header{}
		header.Set("X-ToolHive-Timestamp", "17")
		header.Set("X-ToolHive-Signature", sign(key, "17", []byte(body)))
		recorder := post(t, webhook, body, header)
		return strings.TrimSpace(fmt.Sprint(recorder.Code, " ", recorder.Body))
	}
	const (
		changed = `200 {"allowed":true,"patch":[{"op":"replace","path":"/mcp_request/params/arguments/text","value":"hi!"}],` +
			`"patch_type":"json_patch","uid":"1","version":"v0.1.0"}`
		denied  = `200 {"allowed":false,"uid":"1","version":"v0.1.0"}`
		refused = "401 not signed by the key"
	)
	check := func(tool, key, want string) {
		t.Helper()
		if got := ask(tool, key); got != want {
			t.Errorf("%s with %s: %s, want %s", tool, key, got, want)
		}
	}
	check("echo", "key", changed)
	check("identity", "key", denied)
	check("echo", "another key", refused)
	webhook.Want("another key")
	check("echo", "another key", changed)
	check("echo", "key", refused)
	if refused := webhook.Refused(); refused != 2 {
		t.Errorf("%d requests were refused, want 2", refused)
	}
}

// TestASignatureIsThatOfOpenSSL compares a signature with one that openssl dgst -sha256 -hmac has made of the time, a
// dot and the body.
func TestASignatureIsThatOfOpenSSL(t *testing.T) {
	const want = "sha256=49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686"
	if got := sign("secret", "1700000000", []byte(`{"a":1}`)); got != want {
		t.Errorf("the signature is %s, want %s", got, want)
	}
}
