// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki makes the certificates and keys of a local cluster. They protect a throw-away cluster on loopback,
// so keys lie unencrypted in a directory that only the user can enter.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	// validity is long enough for a state directory that is used again after years.
	validity = 10 * 365 * 24 * time.Hour
	// clockSkew lets a certificate be valid for a process that thinks it is a bit earlier, like after a clock step.
	clockSkew = time.Hour
)

// Pair is a certificate with its private key, both in PEM form.
type Pair struct {
	CertPEM, KeyPEM []byte
}

// Authority signs certificates.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Subject says what a certificate is issued for.
type Subject struct {
	// User is the common name: the user name, for a client certificate.
	User string
	// Groups are the user's groups.
	Groups []string
	// Hosts are the DNS names and IP addresses under which a server is reached. A client certificate has none.
	Hosts []string
}

// NewAuthority makes an authority with a fresh key.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of %s: %w", name, err)
	}
	template, err := newTemplate(Subject{User: name})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	pair, cert, err := sign(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", name, err)
	}
	return &Authority{Pair: pair, cert: cert, key: key}, nil
}

// LoadOrCreateAuthority returns the authority kept in dir as name.crt and name.key. If there is none it makes one
// and keeps it.
func LoadOrCreateAuthority(dir, name string) (*Authority, error) {
	authority, err := loadAuthority(dir, name)
	if !errors.Is(err, os.ErrNotExist) {
		return authority, err
	}
	authority, err = NewAuthority(name)
	if err != nil {
		return nil, err
	}
	return authority, authority.Write(dir, name)
}

func loadAuthority(dir, name string) (*Authority, error) {
	var pair Pair
	var err error
	if pair.CertPEM, err = os.ReadFile(filepath.Join(dir, name+".crt")); err != nil {
		return nil, fmt.Errorf("reading authority: %w", err)
	}
	if pair.KeyPEM, err = os.ReadFile(filepath.Join(dir, name+".key")); err != nil {
		return nil, fmt.Errorf("reading authority: %w", err)
	}
	certBlock, _ := pem.Decode(pair.CertPEM)
	keyBlock, _ := pem.Decode(pair.KeyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, fmt.Errorf("authority %s in %s is damaged: remove the directory", name, dir)
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading authority %s: %w", name, err)
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the key of authority %s: %w", name, err)
	}
	return &Authority{Pair: pair, cert: cert, key: key}, nil
}

// Issue makes a certificate with a fresh key.
func (a *Authority) Issue(subject Subject) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making the key of %s: %w", subject.User, err)
	}
	template, err := newTemplate(subject)
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(subject.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	pair, _, err := sign(template, a.cert, key, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("issuing a certificate for %s: %w", subject.User, err)
	}
	return pair, nil
}

// Write keeps the pair in dir as name.crt and name.key.
func (p Pair) Write(dir, name string) error {
	// The key goes first: a certificate without its key would pass for a complete pair.
	if err := os.WriteFile(filepath.Join(dir, name+".key"), p.KeyPEM, 0o600); err != nil {
		return fmt.Errorf("writing a key: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.CertPEM, 0o600); err != nil {
		return fmt.Errorf("writing a certificate: %w", err)
	}
	return nil
}

// LoadOrCreateSigningKey makes sure that dir has the key with which ServiceAccount tokens are signed as name.key
// and its public part as name.pub. Keeping it keeps tokens valid when a cluster is started again.
func LoadOrCreateSigningKey(dir, name string) error {
	keyPath, publicPath := filepath.Join(dir, name+".key"), filepath.Join(dir, name+".pub")
	if _, err := os.Stat(publicPath); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a signing key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encoding a signing key: %w", err)
	}
	private, err := encodeKey(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(keyPath, private, 0o600); err != nil {
		return fmt.Errorf("writing a signing key: %w", err)
	}
	if err := os.WriteFile(publicPath, encode("PUBLIC KEY", public), 0o600); err != nil {
		return fmt.Errorf("writing a signing key: %w", err)
	}
	return nil
}

func newTemplate(subject Subject) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)),
		Subject:      pkix.Name{CommonName: subject.User, Organization: subject.Groups},
		NotBefore:    time.Now().Add(-clockSkew),
		NotAfter:     time.Now().Add(validity),
	}
	for _, host := range subject.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template, nil
}

func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (Pair, *x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return Pair{}, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return Pair{}, nil, err
	}
	keyPEM, err := encodeKey(key)
	return Pair{CertPEM: encode("CERTIFICATE", der), KeyPEM: keyPEM}, cert, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return encode("EC PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
