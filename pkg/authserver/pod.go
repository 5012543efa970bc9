// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"fmt"
	"path"
	"strings"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// TLSListenerPort is the port, fixed in the proxyrunner, of the listener that tlsListener adds.
const TLSListenerPort = 8443

// Where the proxyrunner finds the files of the authorization server.
const (
	pathBase       = "/etc/toolhive/authserver"
	pathKeys       = pathBase + "/keys"
	pathHMAC       = pathBase + "/hmac"
	pathTLS        = pathBase + "/tls"
	pathRedisCA    = pathBase + "/redis-tls"
	pathUpstreamCA = pathBase + "/upstream-ca"
	pathIssuerCA   = pathBase + "/issuer-ca"

	fileTLSCert    = "tls.crt"
	fileTLSKey     = "tls.key"
	fileRedisCA    = "ca.crt"
	fileSentinelCA = "sentinel-ca.crt"
	fileCA         = "ca.crt"
)

// Names of volumes; those that end in a hyphen are followed by a position.
const (
	volumeTLS        = "authserver-tls-listener"
	volumeKey        = "authserver-signing-key-"
	volumeHMAC       = "authserver-hmac-secret-"
	volumeRedisCA    = "redis-tls-ca-master"
	volumeSentinelCA = "redis-tls-ca-sentinel"
	volumeUpstreamCA = "authserver-upstream-ca-"
	volumeIssuerCA   = "authserver-issuer-ca-"
)

// Names of environment variables; those that end in an underscore are followed by an upstream's name or a position.
const (
	envClientSecret       = "TOOLHIVE_UPSTREAM_CLIENT_SECRET_"
	envInitialAccessToken = "TOOLHIVE_UPSTREAM_DCR_INITIAL_ACCESS_TOKEN_"
	envDelegateSecret     = "TOOLHIVE_DELEGATE_CLIENT_SECRET_"
	envRedisUsername      = "TOOLHIVE_AUTH_SERVER_REDIS_USERNAME"
	envRedisPassword      = "TOOLHIVE_AUTH_SERVER_REDIS_PASSWORD"
)

const (
	// secretMode lets the proxy's user alone read a file.
	secretMode          = 0o400
	defaultSentinelPort = 26379
)

func keyFile(i int) string  { return fmt.Sprintf("key-%d.pem", i) }
func hmacFile(i int) string { return fmt.Sprintf("hmac-%d", i) }

// caFile returns the path of the bundle of the upstream or issuer at that position of its list; empty where it has none.
func caFile(ref *v1beta1.CABundleSource, base string, index int) string {
	if ref == nil {
		return ""
	}
	return fmt.Sprintf("%s/%d/%s", base, index, fileCA)
}

// envSuffix returns an upstream's name as part of the name of an environment variable. Names that Validate accepts have
// no underscore, so that two of them never make one variable.
func envSuffix(upstream string) string {
	return strings.ToUpper(strings.ReplaceAll(upstream, "-", "_"))
}

func clientSecretEnv(upstream string) string { return envClientSecret + envSuffix(upstream) }
func initialAccessTokenEnv(upstream string) string {
	return envInitialAccessToken + envSuffix(upstream)
}
func delegateSecretEnv(i int) string { return fmt.Sprintf("%s%d", envDelegateSecret, i) }

// envIf returns the name of the variable, or empty where there is no reference.
func envIf(ref *v1beta1.SecretKeyRef, name string) string {
	if ref == nil {
		return ""
	}
	return name
}

// pod collects what the proxy's pod gets.
type pod struct {
	env     []*corev1ac.EnvVarApplyConfiguration
	volumes []*corev1ac.VolumeApplyConfiguration
	mounts  []*corev1ac.VolumeMountApplyConfiguration
}

func (p *pod) addEnv(name string, ref *v1beta1.SecretKeyRef) {
	if ref != nil {
		p.env = append(p.env, corev1ac.EnvVar().WithName(name).WithValueFrom(corev1ac.EnvVarSource().
			WithSecretKeyRef(corev1ac.SecretKeySelector().WithName(ref.Name).WithKey(ref.Key))))
	}
}

// addFile mounts one key of a Secret as one file.
func (p *pod) addFile(volume string, ref *v1beta1.SecretKeyRef, directory, file string) {
	p.volumes = append(p.volumes, corev1ac.Volume().WithName(volume).
		WithSecret(corev1ac.SecretVolumeSource().WithSecretName(ref.Name).WithDefaultMode(secretMode).
			WithItems(corev1ac.KeyToPath().WithKey(ref.Key).WithPath(file))))
	p.mounts = append(p.mounts, corev1ac.VolumeMount().WithName(volume).WithMountPath(path.Join(directory, file)).
		WithSubPath(file).WithReadOnly(true))
}

// podParts returns what the proxy's pod gets for a configuration without problems, in ToolHive's order.
func podParts(spec *v1beta1.EmbeddedAuthServerConfig) *pod {
	p := &pod{}
	for i := range spec.UpstreamProviders {
		name := spec.UpstreamProviders[i].Name
		client, initialAccessToken := upstreamSecrets(&spec.UpstreamProviders[i])
		p.addEnv(clientSecretEnv(name), client)
		p.addEnv(initialAccessTokenEnv(name), initialAccessToken)
	}
	clients, _ := delegates(spec)
	for i := range clients {
		p.addEnv(delegateSecretEnv(i), &clients[i].ClientSecretRef)
	}
	if usesRedis(spec.Storage) {
		p.addEnv(envRedisUsername, spec.Storage.Redis.ACLUserConfig.UsernameSecretRef)
		p.addEnv(envRedisPassword, &spec.Storage.Redis.ACLUserConfig.PasswordSecretRef)
	}

	p.addTLSListener(spec.TLSListener)
	for i := range spec.SigningKeySecretRefs {
		p.addFile(fmt.Sprint(volumeKey, i), &spec.SigningKeySecretRefs[i], pathKeys, keyFile(i))
	}
	for i := range spec.HMACSecretRefs {
		p.addFile(fmt.Sprint(volumeHMAC, i), &spec.HMACSecretRefs[i], pathHMAC, hmacFile(i))
	}
	if spec.Storage != nil && spec.Storage.Redis != nil {
		// ToolHive mounts these whatever the type of the storage is.
		if t := spec.Storage.Redis.TLS; t != nil && t.CACertSecretRef != nil {
			p.addFile(volumeRedisCA, t.CACertSecretRef, pathRedisCA, fileRedisCA)
		}
		if t := spec.Storage.Redis.SentinelTLS; t != nil && t.CACertSecretRef != nil {
			p.addFile(volumeSentinelCA, t.CACertSecretRef, pathRedisCA, fileSentinelCA)
		}
	}
	for _, b := range bundles(spec) {
		p.volumes = append(p.volumes, corev1ac.Volume().WithName(b.volume).
			WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(b.ref.ConfigMapRef.Name).
				WithItems(corev1ac.KeyToPath().WithKey(b.key()).WithPath(fileCA))))
		p.mounts = append(p.mounts, corev1ac.VolumeMount().WithName(b.volume).WithMountPath(b.file).WithSubPath(fileCA).WithReadOnly(true))
	}
	return p
}

// upstreamSecrets returns an upstream's client secret and initial access token, each nil for none.
func upstreamSecrets(u *v1beta1.UpstreamProviderConfig) (client, initialAccessToken *v1beta1.SecretKeyRef) {
	var dcr *v1beta1.DCRUpstreamConfig
	switch {
	case u.OIDCConfig != nil:
		client, dcr = u.OIDCConfig.ClientSecretRef, u.OIDCConfig.DCRConfig
	case u.OAuth2Config != nil:
		client, dcr = u.OAuth2Config.ClientSecretRef, u.OAuth2Config.DCRConfig
	}
	if dcr != nil {
		initialAccessToken = dcr.InitialAccessTokenRef
	}
	return client, initialAccessToken
}

// addTLSListener mounts the certificate and its key as a directory: the kubelet updates that when a Secret changes, and the
// runner reads it again.
func (p *pod) addTLSListener(c *v1beta1.TLSListenerConfig) {
	if c == nil {
		return
	}
	cert, key := c.CertificateSecretRef, c.PrivateKeySecretRef
	certItem := corev1ac.KeyToPath().WithKey(cert.Key).WithPath(fileTLSCert)
	keyItem := corev1ac.KeyToPath().WithKey(key.Key).WithPath(fileTLSKey)
	source := func(secret string, items ...*corev1ac.KeyToPathApplyConfiguration) *corev1ac.VolumeProjectionApplyConfiguration {
		return corev1ac.VolumeProjection().WithSecret(corev1ac.SecretProjection().WithName(secret).WithItems(items...))
	}
	projected := corev1ac.ProjectedVolumeSource().WithDefaultMode(secretMode)
	if cert.Name == key.Name {
		projected.WithSources(source(cert.Name, certItem, keyItem))
	} else {
		projected.WithSources(source(cert.Name, certItem), source(key.Name, keyItem))
	}
	p.volumes = append(p.volumes, corev1ac.Volume().WithName(volumeTLS).WithProjected(projected))
	p.mounts = append(p.mounts, corev1ac.VolumeMount().WithName(volumeTLS).WithMountPath(pathTLS).WithReadOnly(true))
}
