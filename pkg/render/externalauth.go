// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/authserver"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

const (
	envExchangeSecret = "TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET"
)

// resolveExternalAuth says with which token the proxy calls the backend.
func (r *renderer) resolveExternalAuth() {
	ref, found := refer(r, configs.ExternalAuthConfigRef)
	if ref == nil {
		return
	}
	if found != nil {
		switch found.Spec.Type {
		case v1beta1.ExternalAuthTypeOBO:
			ref.Invalid = v1beta1.ReasonEnterpriseRequired
		case v1beta1.ExternalAuthTypeBearerToken, v1beta1.ExternalAuthTypeAWSSts:
			ref.Invalid = v1beta1.ReasonExternalAuthTypeNotSupported
		}
	}
	check := func() error {
		switch found.Spec.Type {
		case v1beta1.ExternalAuthTypeBearerToken, v1beta1.ExternalAuthTypeAWSSts:
			return fmt.Errorf("type %s is for remote MCP servers: the proxy of an MCPServer does not start with it", found.Spec.Type)
		}
		return configs.ValidateExternalAuth(&found.Spec)
	}
	if !r.usable(ref, check) {
		return
	}
	switch spec := &found.Spec; spec.Type {
	case v1beta1.ExternalAuthTypeTokenExchange:
		r.exchangeTokens(ref, spec.TokenExchange)
	case v1beta1.ExternalAuthTypeEmbeddedAuthServer:
		r.authServer, r.authServerSpec = ref, spec.EmbeddedAuthServer
	}
	// The other types say how a VirtualMCPServer calls this MCPServer. The proxy has no part in it.
}

func (r *renderer) exchangeTokens(ref *reference, spec *v1beta1.TokenExchangeConfig) {
	subject, _ := configs.SubjectTokenType(spec.SubjectTokenType) // It was checked.
	exchange := &runconfig.TokenExchange{
		TokenURL: spec.TokenURL, ClientID: spec.ClientID, Audience: spec.Audience, Scopes: spec.Scopes,
		SubjectTokenType: subject, HeaderStrategy: runconfig.HeaderReplace,
	}
	if spec.ExternalTokenHeaderName != "" {
		exchange.HeaderStrategy, exchange.ExternalTokenHeaderName = runconfig.HeaderCustom, spec.ExternalTokenHeaderName
	}
	if secret := spec.ClientSecretRef; secret != nil {
		r.proxy.firstEnv = append(r.proxy.firstEnv, variables(sourceExternalAuth, envSecret(envExchangeSecret, secret.Name, secret.Key))...)
	}
	if r.server.Spec.OIDCConfigRef == nil {
		r.amend(ref, "without spec.oidcConfigRef the proxy passes requests without a token on, and exchanges tokens that nobody has checked")
	}
	if spec.SubjectProviderName != "" {
		r.amend(ref, "the proxy ignores subjectProviderName in it, and exchanges the token of the request")
	}
	r.proxy.exchange = exchange
}

// resolveAuthServer makes the proxy an authorization server. It needs all that the other references have made of the proxy.
func (r *renderer) resolveAuthServer() {
	if ref, found := refer(r, configs.AuthServerRef); ref != nil {
		r.resolveAuthServerRef(ref, found)
	}
	if r.authServer != nil {
		r.embedAuthServer()
	}
}

func (r *renderer) resolveAuthServerRef(ref *reference, found *v1beta1.MCPExternalAuthConfig) {
	if kind := r.server.Spec.AuthServerRef.Kind; kind != "" && kind != configs.ExternalAuth {
		r.hold(ref, v1beta1.ReasonAuthServerRefInvalidKind, "spec.authServerRef.kind is %s; it must be %s.", quote(kind), configs.ExternalAuth)
		return
	}
	if found != nil && found.Spec.Type != v1beta1.ExternalAuthTypeEmbeddedAuthServer {
		ref.Invalid = v1beta1.ReasonAuthServerRefInvalidType
	}
	check := func() error {
		if found.Spec.Type != v1beta1.ExternalAuthTypeEmbeddedAuthServer {
			return fmt.Errorf("its type is %s; spec.authServerRef needs one of type %s", found.Spec.Type, v1beta1.ExternalAuthTypeEmbeddedAuthServer)
		}
		return configs.ValidateExternalAuth(&found.Spec)
	}
	switch {
	case !r.usable(ref, check):
	case r.authServer != nil:
		r.hold(ref, ref.Invalid, "spec.authServerRef and spec.externalAuthConfigRef both name an authorization server; the proxy can be one only.")
	default:
		r.authServer, r.authServerSpec = ref, found.Spec.EmbeddedAuthServer
	}
}

// hasUpstream reports whether the proxy is an authorization server that has tokens of another one.
func (r *renderer) hasUpstream() bool {
	for _, to := range []configs.To[*v1beta1.MCPExternalAuthConfig]{configs.AuthServerRef, configs.ExternalAuthConfigRef} {
		if found := to.In(r.in.References.Objects); found != nil && found.Spec.EmbeddedAuthServer != nil && len(found.Spec.EmbeddedAuthServer.UpstreamProviders) > 0 {
			return true
		}
	}
	return false
}

// embedAuthServer puts the authorization server into the proxy.
func (r *renderer) embedAuthServer() {
	ref := r.authServer
	in := authserver.Input{
		Spec: r.authServerSpec, Namespace: r.namespace, Name: r.name, OIDC: r.proxy.oidc != nil, ProxyPort: r.proxyPort,
		TokenExchange: r.proxy.exchange != nil, Replicas: r.server.Spec.Replicas, Bundles: r.in.References.Bundles, Runner: r.runner(),
	}
	if oidc := r.proxy.oidc; oidc != nil {
		in.Audience, in.ResourceURL, in.Issuer, in.Scopes = oidc.Audience, oidc.ResourceURL, oidc.Issuer, oidc.Scopes
	} else if r.server.Spec.OIDCConfigRef != nil {
		return // What is wrong is reported about that reference.
	}
	for _, name := range authserver.ConfigMaps(in.Spec) {
		if bundle := in.Bundles[name]; bundle != nil {
			r.uses(bundle)
		}
	}
	result, problems := authserver.Render(in)
	for _, problem := range problems {
		reason := problem.Reason
		if reason == v1beta1.ReasonInvalidConfig {
			reason = ref.Invalid
		}
		r.hold(ref, reason, "The %s of spec.%s cannot be used: %s", ref.text(), ref.Field, problem.Message)
	}
	if len(problems) > 0 {
		return
	}
	for _, notice := range result.Notices {
		if notice.Reason == v1beta1.ReasonRunnerVersionUnknown {
			r.noteUnknownRunner("In the %s, %s", ref.text(), notice.Message)
			continue
		}
		r.amend(ref, "%s", notice.Message)
	}
	r.proxy.authServer, r.proxy.unshared = result.Document, result.Unshared
	r.proxy.oidc.Scopes = result.Scopes
	r.proxy.lastEnv = append(r.proxy.lastEnv, variables(sourceAuthServer, result.Env...)...)
	for i, volume := range result.Volumes {
		r.proxy.authServerFiles = append(r.proxy.authServerFiles, mounted{volume, result.Mounts[i]})
	}
	if result.CAChecksum != "" {
		r.proxy.annotate(v1beta1.AnnotationAuthServerCAChecksum, result.CAChecksum)
	}
}
