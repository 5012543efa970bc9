// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package metricsserver

import (
	"bytes"
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
	testclock "k8s.io/utils/clock/testing"
)

// issue writes a new certificate into a directory, as the kubelet does a Secret: by turning one link.
func issue(t *testing.T, dir, name string) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	version := t.TempDir()
	for file, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(version, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(dir, file)
		if _, err := os.Lstat(link); err != nil {
			if err := os.Symlink(filepath.Join("..data", file), link); err != nil {
				t.Fatal(err)
			}
		}
	}
	turned := filepath.Join(dir, "..data_tmp")
	if err := os.Symlink(version, turned); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(turned, filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

func serving(t *testing.T, config *tls.Config) *tls.Certificate {
	t.Helper()
	certificate, err := config.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func TestCertificateOfADirectoryIsReloaded(t *testing.T) {
	dir := t.TempDir()
	clock := testclock.NewFakePassiveClock(time.Now())
	if _, err := FromDirectory(t.Context(), clock, dir); err == nil {
		t.Error("an empty directory is accepted")
	}
	issue(t, dir, "first")
	config, err := FromDirectory(t.Context(), clock, dir)
	if err != nil {
		t.Fatal(err)
	}
	if config.MinVersion < tls.VersionTLS12 {
		t.Errorf("the oldest TLS is %x", config.MinVersion)
	}
	expect := func(why, name string) *tls.Certificate {
		t.Helper()
		certificate := serving(t, config)
		if err := certificate.Leaf.VerifyHostname(name); err != nil {
			t.Errorf("%s: %v", why, err)
		}
		return certificate
	}
	before := expect("at first", "first")
	clock.SetTime(clock.Now().Add(lookAgain))
	if expect("nothing changed", "first") != before {
		t.Error("the same files make another certificate")
	}
	issue(t, dir, "second")
	expect("at once", "first")
	clock.SetTime(clock.Now().Add(lookAgain))
	expect("after a while", "second")

	// The certificate of one and the key of another, as in the middle of a change that is not atomic.
	_, foreign, err := cert.GenerateSelfSignedCertKey("third", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "tls.key")
	if err := os.WriteFile(key, foreign, 0o600); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(lookAgain))
	expect("a key that does not fit", "second")
	if err := os.Remove(filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(lookAgain))
	expect("no files", "second")
	issue(t, dir, "fourth")
	clock.SetTime(clock.Now().Add(lookAgain))
	expect("whole again", "fourth")
}

func TestSelfSignedCertificateIsRenewed(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Now())
	config, err := SelfSigned(t.Context(), clock, "metrics", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	first := serving(t, config)
	for _, name := range []string{"metrics", "localhost"} {
		if err := first.Leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	clock.SetTime(first.Leaf.NotAfter.Add(-renewBefore - time.Hour))
	if !bytes.Equal(serving(t, config).Certificate[0], first.Certificate[0]) {
		t.Error("it is another one long before its end")
	}
	clock.SetTime(first.Leaf.NotAfter.Add(-renewBefore + time.Hour))
	if bytes.Equal(serving(t, config).Certificate[0], first.Certificate[0]) {
		t.Error("it is the same a month before its end")
	}
}
