// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package peers holds the servers that the proxy of an MCPServer talks to besides its clients and its backend: an issuer of
// tokens, a login by which users get them, an endpoint that exchanges them, a collector of traces, and webhooks. Each is an http.Handler. Tests ask it what it
// was told.
package peers

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Serve serves the handler at the listener until the test ends: over TLS with the certificate, or over plain HTTP without
// one. It returns the URL.
func Serve(t testing.TB, listener net.Listener, certificate *tls.Certificate, handler http.Handler) (url string) {
	t.Helper()
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	if certificate == nil {
		server.Start()
	} else {
		server.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}}
		server.StartTLS()
	}
	t.Cleanup(func() {
		server.CloseClientConnections() // Proxies keep theirs.
		server.Close()
	})
	return server.URL
}

// answer writes a value as JSON. A client that has gone away is no failure here.
func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}
