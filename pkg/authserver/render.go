// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// document returns the block for a configuration without problems.
func document(in *Input) *Document {
	spec := in.Spec
	d := &Document{
		SchemaVersion:                       SchemaVersion,
		Issuer:                              spec.Issuer,
		AuthorizationEndpointBaseURL:        spec.AuthorizationEndpointBaseURL,
		SigningKeys:                         signingKeys(len(spec.SigningKeySecretRefs)),
		Upstreams:                           upstreams(in),
		ScopesSupported:                     in.Scopes,
		BaselineClientScopes:                spec.BaselineClientScopes,
		AllowedAudiences:                    []string{in.ResourceURL},
		Storage:                             storage(in),
		DisableUpstreamTokenInjection:       spec.DisableUpstreamTokenInjection,
		InsecureAllowHTTP:                   spec.InsecureAllowHTTP,
		TrustedIssuers:                      trustedIssuers(spec.TrustedIssuers),
		AllowConfidentialClientRegistration: spec.AllowConfidentialClientRegistration,
		AllowPrivateKeyJWTRegistration:      spec.AllowPrivateKeyJWTRegistration,
		ForceConfidentialRedirectURIs:       spec.ForceConfidentialRedirectURIs,
		InsecureAllowConfidentialOverLoopbackHTTP: spec.InsecureAllowConfidentialOverLoopbackHTTP,
		DelegateClients:       delegateClients(spec.DelegateClients),
		InboundGrants:         inboundGrants(spec.InboundGrants),
		RegistrationRateLimit: registrationRateLimit(spec.RegistrationRateLimit),
	}
	for i := range spec.HMACSecretRefs {
		d.HMACSecretFiles = append(d.HMACSecretFiles, path.Join(pathHMAC, hmacFile(i)))
	}
	if l := spec.TokenLifespans; l != nil {
		d.TokenLifespans = &TokenLifespans{
			AccessToken: l.AccessTokenLifespan, RefreshToken: l.RefreshTokenLifespan, AuthCode: l.AuthCodeLifespan,
		}
	}
	if c := spec.CIMD; c != nil && c.Enabled {
		d.CIMD = &CIMD{Enabled: true, CacheMaxSize: c.CacheMaxSize, CacheFallbackTTL: c.CacheFallbackTTL}
	}
	if spec.TLSListener != nil {
		d.TLSListener = &TLSListener{CertFile: path.Join(pathTLS, fileTLSCert), KeyFile: path.Join(pathTLS, fileTLSKey)}
	}
	return d
}

func signingKeys(count int) *SigningKeys {
	if count == 0 {
		return nil
	}
	k := &SigningKeys{Directory: pathKeys, SigningKey: keyFile(0)}
	for i := 1; i < count; i++ {
		k.FallbackFiles = append(k.FallbackFiles, keyFile(i))
	}
	return k
}

func upstreams(in *Input) []Upstream {
	list := make([]Upstream, 0, len(in.Spec.UpstreamProviders))
	for i := range in.Spec.UpstreamProviders {
		p := &in.Spec.UpstreamProviders[i]
		u := Upstream{Name: p.Name, Type: string(p.Type)}
		switch {
		case p.OIDCConfig != nil:
			u.OIDC = oidcUpstream(p.Name, i, p.OIDCConfig, in.ResourceURL)
		case p.OAuth2Config != nil:
			u.OAuth2 = oauth2Upstream(p.Name, i, p.OAuth2Config, in.ResourceURL)
		}
		list = append(list, u)
	}
	return list
}

func oidcUpstream(name string, index int, c *v1beta1.OIDCUpstreamConfig, resourceURL string) *OIDCUpstream {
	return &OIDCUpstream{
		IssuerURL:                     c.IssuerURL,
		ClientID:                      c.ClientID,
		ClientSecretEnvVar:            envIf(c.ClientSecretRef, clientSecretEnv(name)),
		RedirectURI:                   redirectURI(c.RedirectURI, resourceURL),
		Scopes:                        c.Scopes,
		UserInfoOverride:              userInfo(c.UserInfoOverride),
		AdditionalAuthorizationParams: c.AdditionalAuthorizationParams,
		AdditionalTokenParams:         c.AdditionalTokenParams,
		OmitScopeOnRefresh:            c.OmitScopeOnRefresh,
		SubjectClaim:                  c.SubjectClaim,
		DCR:                           dcr(name, c.DCRConfig),
		CAFilePath:                    caFile(c.CABundleRef, pathUpstreamCA, index),
		AllowPrivateIPs:               c.AllowPrivateIPs,
	}
}

func oauth2Upstream(name string, index int, c *v1beta1.OAuth2UpstreamConfig, resourceURL string) *OAuth2Upstream {
	u := &OAuth2Upstream{
		AuthorizationEndpoint:         c.AuthorizationEndpoint,
		TokenEndpoint:                 c.TokenEndpoint,
		ClientID:                      c.ClientID,
		ClientSecretEnvVar:            envIf(c.ClientSecretRef, clientSecretEnv(name)),
		TokenEndpointAuthMethod:       c.TokenEndpointAuthMethod,
		RedirectURI:                   redirectURI(c.RedirectURI, resourceURL),
		Scopes:                        c.Scopes,
		UserInfo:                      userInfo(c.UserInfo),
		AdditionalAuthorizationParams: c.AdditionalAuthorizationParams,
		AdditionalTokenParams:         c.AdditionalTokenParams,
		OmitScopeOnRefresh:            c.OmitScopeOnRefresh,
		DCR:                           dcr(name, c.DCRConfig),
		CAFilePath:                    caFile(c.CABundleRef, pathUpstreamCA, index),
		AllowPrivateIPs:               c.AllowPrivateIPs,
		InsecureAllowHTTP:             c.InsecureAllowHTTP,
	}
	if m := c.TokenResponseMapping; m != nil {
		u.TokenResponseMapping = &TokenResponseMapping{
			AccessTokenPath: m.AccessTokenPath, ScopePath: m.ScopePath, RefreshTokenPath: m.RefreshTokenPath, ExpiresInPath: m.ExpiresInPath,
		}
	}
	if t := c.IdentityFromToken; t != nil {
		u.IdentityFromToken = &IdentityFromToken{SubjectPath: t.SubjectPath, NamePath: t.NamePath, EmailPath: t.EmailPath}
	}
	return u
}

// redirectURI returns the address to which the identity provider sends the browser back: the given URI, or the runner's
// callback below the resource.
func redirectURI(given, resourceURL string) string {
	if given != "" {
		return given
	}
	return strings.TrimRight(resourceURL, "/") + "/oauth/callback"
}

func dcr(name string, c *v1beta1.DCRUpstreamConfig) *DCR {
	if c == nil {
		return nil
	}
	return &DCR{
		DiscoveryURL:              c.DiscoveryURL,
		RegistrationEndpoint:      c.RegistrationEndpoint,
		RotationKey:               c.RotationKey,
		RegistrationProbe:         c.RegistrationProbe,
		RegistrationProbeInterval: goDuration(c.RegistrationProbeInterval),
		InitialAccessTokenEnvVar:  envIf(c.InitialAccessTokenRef, initialAccessTokenEnv(name)),
		SoftwareID:                c.SoftwareID,
		SoftwareStatement:         c.SoftwareStatement,
	}
}

func userInfo(c *v1beta1.UserInfoConfig) *UserInfo {
	if c == nil {
		return nil
	}
	u := &UserInfo{EndpointURL: c.EndpointURL, HTTPMethod: c.HTTPMethod, AdditionalHeaders: c.AdditionalHeaders}
	if m := c.FieldMapping; m != nil {
		u.FieldMapping = &UserInfoFieldMapping{SubjectFields: m.SubjectFields, NameFields: m.NameFields, EmailFields: m.EmailFields}
	}
	return u
}

// registrationRateLimit turns a bucket into a rate and a burst.
func registrationRateLimit(b *v1beta1.RateLimitBucket) *RegistrationRateLimit {
	if b == nil {
		return nil
	}
	period, err := time.ParseDuration(b.RefillPeriod)
	if err != nil {
		return nil // refused before
	}
	return &RegistrationRateLimit{RequestsPerSecond: float64(b.MaxTokens) / period.Seconds(), Burst: int(b.MaxTokens)}
}

func storage(in *Input) *Storage {
	spec := in.Spec.Storage
	if spec == nil {
		return nil
	}
	var limit *int
	if spec.MaxDCRClients != nil {
		limit = new(int(*spec.MaxDCRClients))
	}
	if !usesRedis(spec) {
		if limit == nil {
			return nil
		}
		return &Storage{Type: string(v1beta1.AuthServerStorageTypeMemory), MaxDCRClients: limit}
	}
	r := spec.Redis
	redis := &Redis{
		Addr:         r.Addr,
		ClusterMode:  r.ClusterMode,
		AuthType:     "aclUser",
		ACLUser:      &RedisUser{UsernameEnvVar: envIf(r.ACLUserConfig.UsernameSecretRef, envRedisUsername), PasswordEnvVar: envRedisPassword},
		KeyPrefix:    fmt.Sprintf("thv:auth:{%s:%s}:", in.Namespace, in.Name),
		DialTimeout:  r.DialTimeout,
		ReadTimeout:  r.ReadTimeout,
		WriteTimeout: r.WriteTimeout,
		TLS:          redisTLS(r.TLS, fileRedisCA),
	}
	if s := r.SentinelConfig; s != nil {
		redis.Sentinel = &Sentinel{MasterName: s.MasterName, SentinelAddrs: sentinelAddrs(s, in.Namespace), DB: int(s.DB)}
		redis.SentinelTLS = redisTLS(r.SentinelTLS, fileSentinelCA)
	}
	return &Storage{Type: string(v1beta1.AuthServerStorageTypeRedis), Redis: redis, MaxDCRClients: limit}
}

// usesRedis reports whether the configuration chooses Redis; memory is the schema's default.
func usesRedis(spec *v1beta1.AuthServerStorageConfig) bool {
	return spec != nil && spec.Type == v1beta1.AuthServerStorageTypeRedis
}

// sentinelAddrs returns the given addresses, or that of the Service, which may lie in another namespace.
func sentinelAddrs(s *v1beta1.RedisSentinelConfig, namespace string) []string {
	if len(s.SentinelAddrs) > 0 {
		return s.SentinelAddrs
	}
	service, port := s.SentinelService, int32(defaultSentinelPort)
	if service.Namespace != "" {
		namespace = service.Namespace
	}
	if service.Port != 0 {
		port = service.Port
	}
	return []string{fmt.Sprintf("%s.%s.svc.cluster.local:%d", service.Name, namespace, port)}
}

func redisTLS(c *v1beta1.RedisTLSConfig, file string) *RedisTLS {
	if c == nil {
		return nil
	}
	t := &RedisTLS{InsecureSkipVerify: c.InsecureSkipVerify}
	if c.CACertSecretRef != nil {
		t.CACertFile = path.Join(pathRedisCA, file)
	}
	return t
}

// goDuration writes a duration as Go does: 5m becomes 5m0s.
func goDuration(text string) string {
	d, err := time.ParseDuration(text)
	if err != nil {
		return "" // not given; anything else was refused before
	}
	return d.String()
}
