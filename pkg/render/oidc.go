// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/bounds"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

const (
	// clusterIssuer is the issuer of ServiceAccounts' tokens, where an MCPOIDCConfig names none.
	clusterIssuer = "https://kubernetes.default.svc"
	// clusterCA and clusterToken are files that the kubelet puts into each container.
	clusterCA    = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
	clusterToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	// pathBundles is the directory with a directory for each ConfigMap of certificate authorities.
	pathBundles = "/config/certs"

	envOIDCSecret = "TOOLHIVE_OIDC_CLIENT_SECRET"
	// envSkipURLValidation turns off the proxyrunner's check of the URLs that it requests.
	envSkipURLValidation = "INSECURE_DISABLE_URL_VALIDATION"
)

// resolveOIDC says which tokens the proxy accepts.
func (r *renderer) resolveOIDC() {
	ref, found := refer(r, configs.OIDCConfigRef)
	if ref == nil || !r.usable(ref, func() error { return r.checkOIDC(found) }) {
		return
	}
	wanted, spec := r.server.Spec.OIDCConfigRef, &found.Spec
	oidc := &runconfig.OIDC{
		Audience: wanted.Audience, Scopes: wanted.Scopes,
		ResourceURL: cmp.Or(wanted.ResourceURL, fmt.Sprintf("http://%s.%s.svc.cluster.local:%d", r.name, r.namespace, r.proxyPort)),
	}
	if len(oidc.Scopes) == 0 {
		oidc.Scopes = nil
	}
	switch spec.Type {
	case v1beta1.MCPOIDCConfigTypeKubernetesServiceAccount:
		r.tokensOfAccounts(oidc, ref, spec.KubernetesServiceAccount)
	case v1beta1.MCPOIDCConfigTypeInline:
		r.tokensOfIssuer(oidc, ref, spec)
	}
	r.proxy.oidc = oidc
}

// checkOIDC returns why the proxy could accept no token. An MCPOIDCConfig that is valid may still be one for a proxy that has the keys.
func (r *renderer) checkOIDC(config *v1beta1.MCPOIDCConfig) error {
	if err := configs.ValidateOIDC(&config.Spec); err != nil {
		return err
	}
	account := config.Spec.KubernetesServiceAccount
	if account == nil || !r.needsHTTPS() {
		return nil
	}
	const advice = "is plain http, by which the proxyrunner requests no keys: it would accept no token; use https, or type inline with insecureAllowHTTP"
	switch {
	case isPlainHTTP(account.JWKSURL) && account.IntrospectionURL == "":
		return errors.New("spec.kubernetesServiceAccount.jwksUrl " + advice)
	case isPlainHTTP(account.Issuer) && account.JWKSURL == "":
		return errors.New("spec.kubernetesServiceAccount.issuer " + advice)
	}
	return nil
}

// needsHTTPS reports whether the proxyrunner has to request the keys of tokens, and refuses to do so by plain http. It has those of its
// own authorization server.
func (r *renderer) needsHTTPS() bool {
	if r.authServer != nil || r.server.Spec.AuthServerRef != nil {
		return false
	}
	return !r.skipsURLValidation()
}

// skipsURLValidation reports whether the user has turned off the proxyrunner's check of the URLs that it requests.
func (r *renderer) skipsURLValidation() (skips bool) {
	if d := r.proxyOverrides(); d != nil {
		for _, v := range d.Env { // The last one of a name wins.
			if v.Name == envSkipURLValidation {
				skips = strings.EqualFold(v.Value, "true")
			}
		}
	}
	return skips
}

// isPlainHTTP reports whether an address that was checked is of the scheme http.
func isPlainHTTP(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && parsed.Scheme == "http"
}

// tokensOfAccounts accepts tokens of ServiceAccounts.
func (r *renderer) tokensOfAccounts(oidc *runconfig.OIDC, ref *reference, account *v1beta1.KubernetesServiceAccountOIDCConfig) {
	oidc.Issuer = cmp.Or(account.Issuer, clusterIssuer)
	oidc.JWKSURL, oidc.IntrospectionURL = account.JWKSURL, account.IntrospectionURL
	if account.UseClusterAuth == nil || *account.UseClusterAuth {
		oidc.CACertPath, oidc.AuthTokenFile, oidc.AllowPrivateIP = clusterCA, clusterToken, true
	}
	if isPlainHTTP(account.JWKSURL) && r.needsHTTPS() {
		r.amend(ref, "its jwksUrl is plain http, by which the proxyrunner requests no keys: it accepts no token of a ServiceAccount, and only "+
			"what introspectionUrl accepts")
	}
	if account.ServiceAccount != "" || account.Namespace != "" {
		r.amend(ref, "serviceAccount and namespace in it have no effect: the proxyrunner accepts the tokens of all ServiceAccounts that "+
			"carry the audience. Use an authorization policy to tell them apart")
	}
}

// tokensOfIssuer accepts tokens of an issuer.
func (r *renderer) tokensOfIssuer(oidc *runconfig.OIDC, ref *reference, spec *v1beta1.MCPOIDCConfigSpec) {
	inline := spec.Inline
	oidc.Issuer, oidc.JWKSURL, oidc.IntrospectionURL = inline.Issuer, inline.JWKSURL, inline.IntrospectionURL
	oidc.ClientID, oidc.AuthTokenFile = inline.ClientID, inline.JWKSAuthTokenPath
	oidc.AllowPrivateIP, oidc.InsecureAllowHTTP = inline.JWKSAllowPrivateIP, inline.InsecureAllowHTTP
	if secret := inline.ClientSecretRef; secret != nil {
		r.proxy.firstEnv = append(r.proxy.firstEnv, variables(sourceOIDC, envSecret(envOIDCSecret, secret.Name, secret.Key))...)
	}
	if inline.ProtectedResourceAllowPrivateIP {
		r.amend(ref, "protectedResourceAllowPrivateIP in it has no effect: the proxyrunner requests no protected resource")
	}
	if isPlainHTTP(inline.IntrospectionURL) && (inline.ClientID != "" || inline.ClientSecretRef != nil) && !r.skipsURLValidation() {
		r.amend(ref, "its introspectionUrl is plain http, which the proxyrunner refuses for a client in spite of insecureAllowHTTP: it accepts "+
			"no opaque token")
	}
	if bundle := configs.OIDCBundle(spec); bundle != nil {
		r.proxy.issuerBundle, oidc.CACertPath = mountBundle(bundle, pathBundles)
		r.noteBundle(bundle)
		r.rollFor(bundle)
	}
}

// mountBundle returns the volume by which the proxy has a ConfigMap of certificate authorities, and the file.
func mountBundle(bundle *configs.Bundle, directory string) (volume []mounted, file string) {
	directory += "/" + bundle.ConfigMap
	return []mounted{{
		corev1ac.Volume().WithName(bundle.Volume).WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(bundle.ConfigMap).
			WithItems(corev1ac.KeyToPath().WithKey(bundle.Key).WithPath(bundle.Key))),
		readOnlyMount(bundle.Volume, directory),
	}}, directory + "/" + bundle.Key
}

// rollFor has the proxy rolled when the content of a ConfigMap changes, which it reads once. One that does not exist, or not with that
// key, is waited for by the kubelet: pods of another template could not start.
func (r *renderer) rollFor(bundle *configs.Bundle) {
	found := r.in.References.Bundles[bundle.ConfigMap]
	if found == nil {
		r.proxy.bundlesUnknown = true
		return
	}
	r.uses(found)
	content, ok := contentOf(found, bundle.Key)
	if !ok {
		r.proxy.bundlesUnknown = true
		return
	}
	r.proxy.bundles = append(r.proxy.bundles, content)
}

// contentOf returns what a ConfigMap has under a key.
func contentOf(configMap *corev1.ConfigMap, key string) (content []byte, ok bool) {
	if text, ok := configMap.Data[key]; ok {
		return []byte(text), true
	}
	content, ok = configMap.BinaryData[key]
	return content, ok
}

// tooLargeBundle is about a ConfigMap with certificate authorities. Pods mount it all the same.
const tooLargeBundle = "the ConfigMap %s with certificate authorities is too large to be watched: %s; the proxy is not restarted when it changes"

// uses records that the proxy is rendered from the content of a ConfigMap.
func (r *renderer) uses(configMap *corev1.ConfigMap) {
	r.used = append(r.used, Reference{Name: "configmap/" + configMap.Name, UID: configMap.UID, ResourceVersion: configMap.ResourceVersion})
}

// noteBundle reports whether the certificate authorities are there. A pod without them waits, and earlier ones go on.
func (r *renderer) noteBundle(bundle *configs.Bundle) {
	const condition = v1beta1.ConditionCABundleRefValidated
	found := r.in.References.Bundles[bundle.ConfigMap]
	if found == nil {
		r.warn(condition, v1beta1.ReasonCABundleRefNotFound, "The ConfigMap %s with certificate authorities does not exist in the namespace %s; "+
			"new pods of the proxy do not start without it.", quote(bundle.ConfigMap), r.namespace)
		return
	}
	if problem := bounds.Problem(found); problem != "" {
		r.warn(condition, v1beta1.ReasonCABundleRefInvalid, tooLargeBundle, quote(bundle.ConfigMap), problem)
		return
	}
	if _, ok := contentOf(found, bundle.Key); !ok {
		r.warn(condition, v1beta1.ReasonCABundleRefInvalid, "The ConfigMap %s has no key %s with certificate authorities; new pods of the proxy "+
			"do not start without it.", quote(bundle.ConfigMap), quote(bundle.Key))
		return
	}
	r.notice(condition, v1beta1.ReasonCABundleRefValid, "CA bundle ConfigMap %s is valid (key: %s)", quote(bundle.ConfigMap), bundle.Key)
}
