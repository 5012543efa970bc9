// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import "testing"

func TestPrivateAddressesAreKnown(t *testing.T) {
	for host, want := range map[string]bool{
		"idp.example.com":      false, // a name is looked up by the proxyrunner, and checked then
		"8.8.8.8":              false,
		"10.0.0.1":             true,
		"127.0.0.1":            true,
		"169.254.169.254":      true,
		"172.31.0.1":           true,
		"172.32.0.1":           false,
		"192.168.1.1":          true,
		"100.64.0.1":           true,
		"0.0.0.0":              true,
		"255.255.255.255":      true,
		"::":                   true,
		"::1":                  true,
		"fe80::1":              true,
		"fe80::1%eth0":         true,
		"fd00::1":              true,
		"2606:4700::1":         false,
		"::ffff:10.0.0.1":      true,
		"::ffff:8.8.8.8":       false,
		"64:ff9b::a00:1":       true, // 10.0.0.1 behind NAT64
		"64:ff9b::808:808":     false,
		"2002:a00:1::":         true, // 10.0.0.1 as 6to4
		"2002:808:808::":       false,
		"::ffff:0:a00:1":       true,
		"64:ff9b:1::808:808":   true,
		"2001:0:1::1":          true,
		"2001:4860:4860::8888": false,
	} {
		if got := private(host); got != want {
			t.Errorf("%s: got %t, want %t", host, got, want)
		}
	}
}
