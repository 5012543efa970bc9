// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// maxRedirectURI is the longest redirect URI, in bytes, that the proxyrunner takes.
const maxRedirectURI = 2048

// Messages name a URL by its field, never by its text: a URL may hold credentials.

// parseURL returns an absolute URL with a host, and reports whether the text is one.
func parseURL(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Hostname() == "" {
		return nil, false
	}
	return u, true
}

// httpURL is parseURL for schemes http and https alone.
func httpURL(text string) (*url.URL, bool) {
	u, ok := parseURL(text)
	return u, ok && (u.Scheme == "http" || u.Scheme == "https")
}

// loopback reports whether a host, without port, is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// notURL is said of a text that is to be a URL.
const notURL = "must be an http or https URL with a host."

// issuer checks an issuer identifier of the authorization server itself.
func (c *checker) issuer(field, text string, insecure bool) {
	u, ok := httpURL(text)
	switch {
	case text == "":
		c.refuse(field, "is missing. Set the URL under which clients reach the authorization server.")
	case !ok:
		c.refuse(field, notURL)
	case u.User != nil:
		c.refuse(field, "holds credentials. Remove them.")
	case u.RawQuery != "" || u.Fragment != "":
		c.refuse(field, "has a query or a fragment. Remove it.")
	case strings.HasSuffix(text, "/"):
		c.refuse(field, "ends with a slash. Remove it.")
	default:
		c.endpoint(field, text, insecure)
	}
}

// endpoint checks a URL at which the proxyrunner calls an identity provider.
func (c *checker) endpoint(field, text string, insecure bool) {
	u, ok := httpURL(text)
	switch {
	case text == "":
		c.refuse(field, "is missing. Set it.")
	case !ok:
		c.refuse(field, notURL)
	case u.Scheme == "http" && !insecure && !loopback(u.Hostname()):
		c.refuse(field, "is plain http on a host that is not loopback. Use https, or set insecureAllowHTTP on a network that you trust.")
	}
}

// redirect says what is wrong with a redirect URI, and what to do; empty for nothing.
func redirect(text string, insecure bool) string {
	if len(text) > maxRedirectURI {
		return fmt.Sprintf("is longer than %d bytes. Shorten it.", maxRedirectURI)
	}
	u, ok := httpURL(text)
	switch {
	case !ok:
		return notURL
	case u.Fragment != "":
		return "has a fragment. Remove it."
	case u.Scheme == "http" && !insecure && !loopbackRedirect(u.Hostname()):
		return "is plain http on a host that is not loopback, at which the proxyrunner exits. " +
			"Use https, or set insecureAllowHTTP on a network that you trust."
	}
	return ""
}

// loopbackRedirect reports whether plain http may lead back to a host. It is not quite loopback: the proxyrunner leaves this
// decision to its OAuth library.
func loopbackRedirect(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// resource says what is wrong with a resource indicator (RFC 8707), and what to do; empty for nothing.
func resource(text string) string {
	u, ok := httpURL(text)
	switch {
	case !ok:
		return notURL
	case u.Fragment != "":
		return "has a fragment. Remove it."
	}
	return ""
}

// reserved are networks that a JWKS URL must not name by address without allowPrivateIPs.
var reserved = prefixes("0.0.0.0/8", "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10",
	"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/128", "::1/128", "fe80::/10", "fc00::/7", "ff00::/8", "64:ff9b:1::/48", "2001::/32")

// The networks whose addresses hold an IPv4 address, which counts in their place: in the last four bytes, or after the first two.
var (
	embedsLast  = prefixes("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")
	embedsFirst = prefixes("2002::/16")
)

func prefixes(list ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, 0, len(list))
	for _, text := range list {
		parsed = append(parsed, netip.MustParsePrefix(text))
	}
	return parsed
}

func within(networks []netip.Prefix, ip netip.Addr) bool {
	for _, network := range networks {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}

// private reports whether a host is an address, not a name, of a reserved network.
func private(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	ip = ip.WithZone("").Unmap()
	if within(reserved, ip) {
		return true
	}
	if !ip.Is6() {
		return false
	}
	bytes := ip.As16()
	switch {
	case within(embedsLast, ip):
		return within(reserved, netip.AddrFrom4([4]byte(bytes[12:16])))
	case within(embedsFirst, ip):
		return within(reserved, netip.AddrFrom4([4]byte(bytes[2:6])))
	}
	return false
}
