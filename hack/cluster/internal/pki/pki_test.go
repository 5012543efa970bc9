// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func certificate(t *testing.T, pair Pair) *x509.Certificate {
	t.Helper()
	loaded, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Leaf
}

func pool(authority *Authority) *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.CertPEM)
	return roots
}

func TestIssue(t *testing.T) {
	authority, err := NewAuthority("ours")
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewAuthority("ours")
	if err != nil {
		t.Fatal(err)
	}
	client := mustIssue(t, authority, Subject{User: "alice", Groups: []string{"a", "b"}})
	if got := client.Subject; got.CommonName != "alice" || !slices.Equal(got.Organization, []string{"a", "b"}) {
		t.Errorf("subject of the client is %v", got)
	}
	server := mustIssue(t, authority, Subject{User: "server", Hosts: []string{"127.0.0.1", "localhost"}})
	if !slices.Equal(server.DNSNames, []string{"localhost"}) || len(server.IPAddresses) != 1 || !server.IPAddresses[0].Equal(net.IPv4(127, 0, 0, 1)) {
		t.Errorf("hosts of the server are %v and %v", server.DNSNames, server.IPAddresses)
	}
	asClient, asServer := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for name, test := range map[string]struct {
		cert  *x509.Certificate
		roots *x509.CertPool
		usage []x509.ExtKeyUsage
		host  string
		valid bool
	}{
		"client":                     {client, pool(authority), asClient, "", true},
		"client as server":           {client, pool(authority), asServer, "", false},
		"client of another CA":       {client, pool(other), asClient, "", false},
		"server":                     {server, pool(authority), asServer, "127.0.0.1", true},
		"server under another name":  {server, pool(authority), asServer, "example.com", false},
		"server as client of itself": {server, pool(authority), asClient, "", true},
	} {
		_, err := test.cert.Verify(x509.VerifyOptions{Roots: test.roots, KeyUsages: test.usage, DNSName: test.host})
		if (err == nil) != test.valid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func mustIssue(t *testing.T, authority *Authority, subject Subject) *x509.Certificate {
	t.Helper()
	pair, err := authority.Issue(subject)
	if err != nil {
		t.Fatal(err)
	}
	return certificate(t, pair)
}

func TestAuthorityIsKept(t *testing.T) {
	dir := t.TempDir()
	first, err := LoadOrCreateAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	second, err := LoadOrCreateAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mustIssue(t, second, Subject{User: "u"}).Verify(x509.VerifyOptions{
		Roots: pool(first), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		t.Errorf("the loaded authority is another one: %v", err)
	}
	info, err := os.Stat(filepath.Join(dir, "ca.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key has the mode %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreateAuthority(dir, "ca"); err == nil {
		t.Error("a damaged authority is no error")
	}
}

func TestSigningKeyIsKept(t *testing.T) {
	dir := t.TempDir()
	var contents []string
	for range 2 {
		if err := LoadOrCreateSigningKey(dir, "sa"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"sa.key", "sa.pub"} {
			content, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			contents = append(contents, string(content))
		}
	}
	if !slices.Equal(contents[:2], contents[2:]) {
		t.Error("the second call made another key")
	}
}
