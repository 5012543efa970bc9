// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package metricsserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// lookAgain is how often, at most, the files of a certificate are read.
	lookAgain = 10 * time.Second
	// renewBefore is how long before its end a self-signed certificate is replaced by a new one.
	renewBefore = 30 * 24 * time.Hour
)

// SelfSigned returns TLS with a certificate that this process makes for the names, and renews a month before it
// expires. No other process knows it: clients cannot verify it.
func SelfSigned(ctx context.Context, clock clock.PassiveClock, names ...string) (*tls.Config, error) {
	return config(&source{
		logger: klog.FromContext(ctx), clock: clock, every: time.Minute,
		load: func(old *tls.Certificate) (*tls.Certificate, error) {
			if old != nil && clock.Now().Before(old.Leaf.NotAfter.Add(-renewBefore)) {
				return old, nil
			}
			certificate, key, err := cert.GenerateSelfSignedCertKey(names[0], nil, names[1:])
			if err != nil {
				return nil, fmt.Errorf("cannot make a certificate: %w", err)
			}
			return pair(certificate, key)
		},
	})
}

// FromDirectory returns TLS with the files tls.crt and tls.key of a directory, as in a mounted Secret. A change is used
// within ten seconds; if the files cannot be read, the last certificate stays.
func FromDirectory(ctx context.Context, clock clock.PassiveClock, dir string) (*tls.Config, error) {
	var lastCertificate, lastKey []byte
	return config(&source{
		logger: klog.FromContext(ctx), clock: clock, every: lookAgain,
		load: func(old *tls.Certificate) (*tls.Certificate, error) {
			certificate, err := os.ReadFile(filepath.Join(dir, corev1.TLSCertKey))
			if err != nil {
				return nil, err
			}
			key, err := os.ReadFile(filepath.Join(dir, corev1.TLSPrivateKeyKey))
			if err != nil {
				return nil, err
			}
			if old != nil && bytes.Equal(certificate, lastCertificate) && bytes.Equal(key, lastKey) {
				return old, nil
			}
			renewed, err := pair(certificate, key)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", dir, err)
			}
			lastCertificate, lastKey = certificate, key
			return renewed, nil
		},
	})
}

func pair(certificate, key []byte) (*tls.Certificate, error) {
	made, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	return &made, nil
}

// config returns TLS with the certificate of a source, of which there must be one at once.
func config(s *source) (*tls.Config, error) {
	if _, err := s.get(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.get() },
	}, nil
}

// source is a certificate that is looked after when it is used.
type source struct {
	logger klog.Logger
	clock  clock.PassiveClock
	// every is how often load is called, at most.
	every time.Duration
	// load returns the certificate that is to be used from now on, which may be the old one; that is nil at first.
	load func(old *tls.Certificate) (*tls.Certificate, error)

	mu      sync.Mutex
	current *tls.Certificate
	looked  time.Time
}

func (s *source) get() (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if s.current != nil && now.Sub(s.looked) < s.every {
		return s.current, nil
	}
	s.looked = now
	renewed, err := s.load(s.current)
	switch {
	case err != nil && s.current == nil:
		return nil, err
	case err != nil:
		s.logger.Error(err, "The certificate stays as it was")
	default:
		s.current = renewed
	}
	return s.current, nil
}
