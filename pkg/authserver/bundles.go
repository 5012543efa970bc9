// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/bounds"
)

// issuersMarker stands in the checksum between the bundles of the upstreams and those of the trusted issuers.
const issuersMarker = "trustedIssuers"

// bundle is one reference to certificate authorities.
type bundle struct {
	// field is the path of the reference.
	field string
	ref   *v1beta1.CABundleSource
	// volume and file are the volume's name and the path of the file in the proxy.
	volume, file string
	ofIssuer     bool
}

// key in the ConfigMap.
func (b *bundle) key() string {
	return cmp.Or(b.ref.ConfigMapRef.Key, fileCA)
}

// bundles returns the references that name a ConfigMap: those of the upstreams, then those of the trusted issuers.
func bundles(spec *v1beta1.EmbeddedAuthServerConfig) []bundle {
	var list []bundle
	add := func(ref *v1beta1.CABundleSource, field, volume, base string, index int) {
		if ref != nil && ref.ConfigMapRef != nil && ref.ConfigMapRef.Name != "" {
			list = append(list, bundle{
				field: field, ref: ref, volume: fmt.Sprint(volume, index), file: caFile(ref, base, index), ofIssuer: base == pathIssuerCA,
			})
		}
	}
	for i := range spec.UpstreamProviders {
		u, path := &spec.UpstreamProviders[i], upstreamPath(i)
		switch {
		case u.OIDCConfig != nil:
			add(u.OIDCConfig.CABundleRef, path+".oidcConfig.caBundleRef", volumeUpstreamCA, pathUpstreamCA, i)
		case u.OAuth2Config != nil:
			add(u.OAuth2Config.CABundleRef, path+".oauth2Config.caBundleRef", volumeUpstreamCA, pathUpstreamCA, i)
		}
	}
	for i := range spec.TrustedIssuers {
		add(spec.TrustedIssuers[i].CABundleRef, issuerPath(i)+".caBundleRef", volumeIssuerCA, pathIssuerCA, i)
	}
	return list
}

// checkBundles checks the content of every bundle and returns the checksum of all of them: in lower-case hex, SHA-256 over each
// bundle and a zero byte, with issuersMarker and a zero byte before the first of a trusted issuer. It is empty for no bundle.
// The recipe is ToolHive's: another one would roll the proxies that are taken over.
func (c *checker) checkBundles(spec *v1beta1.EmbeddedAuthServerConfig, configMaps map[string]*corev1.ConfigMap) string {
	list := bundles(spec)
	if len(list) == 0 {
		return ""
	}
	sum, marked := sha256.New(), false
	for i := range list {
		content, what := readBundle(&list[i], configMaps)
		if what != "" {
			c.refuse(list[i].field, "%s", what)
			continue
		}
		if list[i].ofIssuer && !marked {
			sum.Write([]byte(issuersMarker + "\x00"))
			marked = true
		}
		sum.Write(content)
		sum.Write([]byte{0})
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// readBundle returns the bytes of a bundle, or what is wrong with it and what to do, without a byte of its content.
func readBundle(b *bundle, configMaps map[string]*corev1.ConfigMap) (content []byte, what string) {
	ref := b.ref.ConfigMapRef
	if ref.Optional != nil && *ref.Optional {
		return nil, "is optional, and the proxy must not start without its certificate authorities. Remove configMapRef.optional."
	}
	configMap := configMaps[ref.Name]
	if configMap == nil {
		return nil, fmt.Sprintf("names the ConfigMap %s, which does not exist in this namespace. Create it.", quote(ref.Name))
	}
	if problem := bounds.Problem(configMap); problem != "" {
		return nil, fmt.Sprintf("names the ConfigMap %s, which is too large: %s. Make it smaller.", quote(ref.Name), problem)
	}
	var ok bool
	content, ok = configMap.BinaryData[b.key()]
	if text, found := configMap.Data[b.key()]; found {
		content, ok = []byte(text), true
	}
	if !ok {
		return nil, fmt.Sprintf("names the key %s of the ConfigMap %s, which has no such key. Add it, or name another one.",
			quote(b.key()), quote(ref.Name))
	}
	if what := checkCertificates(content); what != "" {
		return nil, fmt.Sprintf("names the key %s of the ConfigMap %s, %s. Put certificates in PEM there, and nothing else.",
			quote(b.key()), quote(ref.Name), what)
	}
	return content, ""
}

// checkCertificates says what is wrong with a bundle; empty for nothing.
func checkCertificates(content []byte) string {
	rest := bytes.TrimSpace(content)
	if len(rest) == 0 {
		return "which is empty"
	}
	for n := 1; len(rest) > 0; n++ {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		rest = bytes.TrimSpace(rest)
		switch {
		case block == nil:
			return "which holds something that is not PEM"
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return "which holds a private key"
		case block.Type != "CERTIFICATE":
			return fmt.Sprintf("whose PEM block %d is not a certificate", n)
		case len(block.Headers) > 0:
			return fmt.Sprintf("whose PEM block %d has headers, and is skipped for them", n)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Sprintf("whose PEM block %d cannot be read as a certificate", n)
		}
	}
	return ""
}
