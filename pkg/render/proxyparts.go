// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/authserver"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// proxyParts are the parts of the proxy that come from references.
type proxyParts struct {
	oidc        *runconfig.OIDC
	exchange    *runconfig.TokenExchange
	authz       *runconfig.Authz
	telemetry   *runconfig.Telemetry
	filter      []string
	overrides   map[string]runconfig.ToolOverride
	validating  []runconfig.Webhook
	mutating    []runconfig.Webhook
	authServer  *authserver.Document
	unshared    string
	annotations map[string]string
	// bundles are the contents of certificate authorities that the proxyrunner reads when it starts.
	bundles [][]byte
	// bundlesUnknown is set when one of these is missing.
	bundlesUnknown bool

	// firstEnv are variables that the user may replace, and lastEnv those that win over the user's.
	firstEnv, lastEnv []variable
	// secrets are the volumes of webhooks, which come before the user's. After these come certificate authorities, first those of
	// tokens' issuers, then of telemetry's collector, and then what the authorization server needs.
	secrets, issuerBundle, collectorBundle, authServerFiles []mounted
}

// mounted is a volume and where the proxy has it.
type mounted struct {
	volume *corev1ac.VolumeApplyConfiguration
	mount  *corev1ac.VolumeMountApplyConfiguration
}

func (p *proxyParts) annotate(key, value string) {
	if p.annotations == nil {
		p.annotations = map[string]string{}
	}
	p.annotations[key] = value
}

// sumBundles records a hash of the certificate authorities' content in the template. While some are missing the hash that is there
// stays, see Intent.Preserve.
func (p *proxyParts) sumBundles() {
	if len(p.bundles) == 0 || p.bundlesUnknown {
		return
	}
	sum := sha256.New()
	for _, content := range p.bundles {
		// A hash never returns an error. Lengths keep contents apart.
		_, _ = fmt.Fprintf(sum, "%d:", len(content))
		_, _ = sum.Write(content)
	}
	p.annotate(v1beta1.AnnotationCAChecksum, hex.EncodeToString(sum.Sum(nil)))
}

// complete puts them into the document that the proxyrunner reads.
func (p *proxyParts) complete(document *runconfig.RunConfig) {
	if p.oidc != nil {
		document.OIDC, document.CABundle, document.JWKSAuthTokenFile = p.oidc, p.oidc.CACertPath, p.oidc.AuthTokenFile
	}
	if p.authz != nil {
		document.Authz = p.authz
	}
	document.TokenExchange, document.Telemetry = p.exchange, p.telemetry
	document.ToolsFilter, document.ToolsOverride = p.filter, p.overrides
	document.ValidatingWebhooks, document.MutatingWebhooks = p.validating, p.mutating
	if p.authServer != nil {
		document.AuthServer = p.authServer
	}
}
