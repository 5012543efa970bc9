// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// root is the path of the configuration in its object.
const root = "spec.embeddedAuthServer"

// maxSigningKeys is how many signing keys the schema takes.
const maxSigningKeys = 5

func upstreamPath(i int) string { return fmt.Sprintf("%s.upstreamProviders[%d]", root, i) }
func issuerPath(i int) string   { return fmt.Sprintf("%s.trustedIssuers[%d]", root, i) }

// Validate returns the first thing for which the configuration alone cannot work, whatever MCPServer refers to it: the path of
// the field, what is wrong, and what to do. It holds no secret. The rules of the schema are checked again where a proxyrunner
// would exit without them, as an object may be older than they are.
func Validate(spec *v1beta1.EmbeddedAuthServerConfig) error {
	c := &checker{}
	c.config(spec)
	if len(c.found) == 0 {
		return nil
	}
	return errors.New(c.found[0])
}

// checker collects what is wrong, in the order of the fields.
type checker struct {
	found []string
}

// refuse records what is wrong with a field and what to do, as whole sentences that go on from the field's path.
func (c *checker) refuse(field, format string, args ...any) {
	c.found = append(c.found, field+" "+fmt.Sprintf(format, args...))
}

// refuseWhere is refuse where something is wrong.
func (c *checker) refuseWhere(wrong bool, field, format string, args ...any) {
	if wrong {
		c.refuse(field, format, args...)
	}
}

// refuseIf is refuse where there is something to say.
func (c *checker) refuseIf(field, what string) {
	c.refuseWhere(what != "", field, "%s", what)
}

// quote writes a value that is not secret, without credentials if it is a URL; a long one is cut.
func quote(text string) string {
	const longest = 64
	if u, ok := parseURL(text); ok && u.User != nil {
		u.User = nil
		text = u.String()
	}
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return strconv.Quote(text)
}

// config checks everything that does not depend on the MCPServer, and returns the grants that follow from it.
func (c *checker) config(spec *v1beta1.EmbeddedAuthServerConfig) grants {
	if spec == nil {
		c.refuse(root, "is missing. Set it, or choose another type.")
		return grants{}
	}
	c.issuer(root+".issuer", spec.Issuer, spec.InsecureAllowHTTP)
	if spec.AuthorizationEndpointBaseURL != "" {
		c.issuer(root+".authorizationEndpointBaseUrl", spec.AuthorizationEndpointBaseURL, spec.InsecureAllowHTTP)
	}
	c.keys(spec)
	c.lifespans(spec.TokenLifespans)
	c.tlsListener(spec.TLSListener)
	c.upstreams(spec)
	c.storage(spec.Storage)
	c.spiffe(spec)
	g := c.grants(spec)
	c.confidential(spec, &g)
	c.registration(spec, &g)
	return g
}

func (c *checker) keys(spec *v1beta1.EmbeddedAuthServerConfig) {
	if len(spec.SigningKeySecretRefs) > maxSigningKeys {
		c.refuse(root+".signingKeySecretRefs", "has more than %d entries. Remove keys whose tokens have expired.", maxSigningKeys)
	}
	for i := range spec.SigningKeySecretRefs {
		c.secretKey(fmt.Sprintf("%s.signingKeySecretRefs[%d]", root, i), &spec.SigningKeySecretRefs[i])
	}
	for i := range spec.HMACSecretRefs {
		c.secretKey(fmt.Sprintf("%s.hmacSecretRefs[%d]", root, i), &spec.HMACSecretRefs[i])
	}
}

// secretKey checks a reference; nil is for none. The API server takes no pod with one that names nothing.
func (c *checker) secretKey(field string, ref *v1beta1.SecretKeyRef) {
	if ref == nil {
		return
	}
	if ref.Name == "" || ref.Key == "" {
		c.refuse(field, "does not name a Secret and a key in it. Set name and key.")
	} else if len(validation.IsConfigMapKey(ref.Key)) > 0 {
		c.refuse(field+".key", "is not a key that a Secret can have. Use letters, digits, hyphens, underscores and dots.")
	}
}

// bundleRef checks the shape of a reference to certificate authorities; checkBundles checks their content.
func (c *checker) bundleRef(field string, ref *v1beta1.CABundleSource) {
	if ref != nil && (ref.ConfigMapRef == nil || ref.ConfigMapRef.Name == "") {
		c.refuse(field+".configMapRef.name", "is missing. Name the ConfigMap with the certificates.")
	}
}

// duration checks a text as Go writes durations; an empty one leaves the runner its default. It returns 0 where the text is
// empty or wrong.
func (c *checker) duration(field, text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	c.refuseWhere(err != nil, field, "must be a duration, such as 1h30m.")
	return d
}

// lifespan is a duration within bounds; 0 leaves the runner its default.
func (c *checker) lifespan(field, text string, shortest, longest time.Duration) {
	if d := c.duration(field, text); d != 0 && (d < shortest || d > longest) {
		c.refuse(field, "is %v, and the proxyrunner takes %v to %v. Choose one of these.", d, shortest, longest)
	}
}

func (c *checker) lifespans(l *v1beta1.TokenLifespanConfig) {
	if l == nil {
		return
	}
	c.lifespan(root+".tokenLifespans.accessTokenLifespan", l.AccessTokenLifespan, time.Minute, 24*time.Hour)
	c.lifespan(root+".tokenLifespans.refreshTokenLifespan", l.RefreshTokenLifespan, time.Hour, 30*24*time.Hour)
	c.lifespan(root+".tokenLifespans.authCodeLifespan", l.AuthCodeLifespan, 30*time.Second, 10*time.Minute)
}

func (c *checker) tlsListener(l *v1beta1.TLSListenerConfig) {
	if l != nil {
		c.secretKey(root+".tlsListener.certificateSecretRef", &l.CertificateSecretRef)
		c.secretKey(root+".tlsListener.privateKeySecretRef", &l.PrivateKeySecretRef)
	}
}

// spiffe refuses SPIFFE as a whole: the schema takes it, and no release of the proxyrunner starts with it.
func (c *checker) spiffe(spec *v1beta1.EmbeddedAuthServerConfig) {
	const what = "asks for SPIFFE client authentication, which no proxyrunner has yet: it exits. Remove it."
	c.refuseWhere(len(spec.SPIFFETrustDomains) > 0, root+".spiffeTrustDomains", what)
	c.refuseWhere(spec.InboundGrants != nil && len(spec.InboundGrants.SPIFFEClientAuth) > 0, root+".inboundGrants.spiffeClientAuth", what)
}

func (c *checker) storage(s *v1beta1.AuthServerStorageConfig) {
	if s == nil {
		return
	}
	field := root + ".storage"
	c.refuseWhere(s.MaxDCRClients != nil && *s.MaxDCRClients < 0, field+".maxDCRClients", "is negative. Set the highest number of clients, or 0 for no limit.")
	switch s.Type {
	case v1beta1.AuthServerStorageTypeRedis:
		c.redis(field+".redis", s.Redis)
	case v1beta1.AuthServerStorageTypeMemory, "":
		if s.Redis != nil {
			// It has no effect, but that its certificate authorities are mounted.
			c.redisTLS(field+".redis", s.Redis)
		}
	default:
		c.refuse(field+".type", "is %s. Choose memory or redis.", quote(string(s.Type)))
	}
}

func (c *checker) redis(field string, r *v1beta1.RedisStorageConfig) {
	if r == nil {
		c.refuse(field, "is missing, and the type of the storage is redis. Set it.")
		return
	}
	switch {
	case r.Addr == "" && r.SentinelConfig == nil:
		c.refuse(field, "names no Redis. Set addr or sentinelConfig.")
	case r.Addr != "" && r.SentinelConfig != nil:
		c.refuse(field, "has addr and sentinelConfig. Remove one of them.")
	}
	c.refuseWhere(r.ClusterMode && r.Addr == "", field+".clusterMode", "needs addr. Set it, or turn clusterMode off.")
	if s := r.SentinelConfig; s != nil {
		c.sentinel(field+".sentinelConfig", s)
	}
	c.secretKey(field+".aclUserConfig.usernameSecretRef", r.ACLUserConfig.UsernameSecretRef)
	c.secretKey(field+".aclUserConfig.passwordSecretRef", &r.ACLUserConfig.PasswordSecretRef)
	c.duration(field+".dialTimeout", r.DialTimeout)
	c.duration(field+".readTimeout", r.ReadTimeout)
	c.duration(field+".writeTimeout", r.WriteTimeout)
	c.redisTLS(field, r)
}

func (c *checker) sentinel(field string, s *v1beta1.RedisSentinelConfig) {
	c.refuseWhere(s.MasterName == "", field+".masterName", "is missing. Set the name under which the sentinels know the master.")
	switch {
	case len(s.SentinelAddrs) > 0:
	case s.SentinelService == nil:
		c.refuse(field, "names no sentinel. Set sentinelAddrs or sentinelService.")
	case s.SentinelService.Name == "":
		c.refuse(field+".sentinelService.name", "is missing. Set it.")
	}
}

func (c *checker) redisTLS(field string, r *v1beta1.RedisStorageConfig) {
	if r.TLS != nil {
		c.secretKey(field+".tls.caCertSecretRef", r.TLS.CACertSecretRef)
	}
	if r.SentinelTLS != nil {
		c.secretKey(field+".sentinelTls.caCertSecretRef", r.SentinelTLS.CACertSecretRef)
	}
}
