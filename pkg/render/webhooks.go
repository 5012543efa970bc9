// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// pathWebhooks is the directory with a directory for each key of a Secret that webhooks need.
const pathWebhooks = "/etc/toolhive/webhooks"

// resolveWebhooks says whom the proxy asks about each request.
func (r *renderer) resolveWebhooks() {
	ref, found := refer(r, configs.WebhookConfigRef)
	if ref == nil || !r.usable(ref, nil) {
		return
	}
	spec, files := &found.Spec, secretFiles{}
	for _, webhook := range slices.Concat(spec.Validating, spec.Mutating) {
		if tls := webhook.TLSConfig; tls != nil && tls.InsecureSkipVerify && tls.CASecretRef != nil {
			r.amend(ref, "caSecretRef of its webhook %s has no effect, as insecureSkipVerify is set", quote(webhook.Name))
		}
	}
	for i := range spec.Validating {
		r.proxy.validating = append(r.proxy.validating, files.webhook("VALIDATING", &spec.Validating[i]))
	}
	for i := range spec.Mutating {
		r.proxy.mutating = append(r.proxy.mutating, files.webhook("MUTATING", &spec.Mutating[i]))
	}
	r.proxy.secrets = files.mounted()
}

// secretFiles are keys of Secrets, by ToolHive's names for them.
type secretFiles map[string]secretFile

type secretFile struct {
	ref  *v1beta1.SecretKeyRef
	name string
}

// webhook returns a webhook as the proxyrunner reads it, and takes up the Secrets that it needs.
func (f secretFiles) webhook(kind string, spec *v1beta1.WebhookSpec) runconfig.Webhook {
	webhook := runconfig.Webhook{
		Name: spec.Name, URL: spec.URL, FailurePolicy: string(cmp.Or(spec.FailurePolicy, v1beta1.WebhookFailurePolicyFail)),
	}
	if timeout, err := configs.WebhookTimeout(spec); err == nil { // It was checked.
		webhook.Timeout = timeout.Nanoseconds()
	}
	file := func(purpose, name string, ref *v1beta1.SecretKeyRef) string {
		if ref == nil {
			return ""
		}
		return f.path(kind, spec.Name, purpose, name, ref)
	}
	webhook.HMACSecretRef = file("HMAC", "hmac", spec.HMACSecretRef)
	if tls := spec.TLSConfig; tls != nil {
		webhook.TLS = &runconfig.WebhookTLS{
			InsecureSkipVerify: tls.InsecureSkipVerify,
			CABundlePath:       file("TLS_CA", "ca.crt", tls.CASecretRef),
			ClientCertPath:     file("TLS_CLIENT_CERT", "tls.crt", tls.ClientCertSecretRef),
			ClientKeyPath:      file("TLS_CLIENT_KEY", "tls.key", tls.ClientKeySecretRef),
		}
	}
	return webhook
}

// path returns where the proxy has a key of a Secret. It depends on the Secret's name and on the key, so that another one makes
// another RunConfig.
func (f secretFiles) path(kind, webhook, purpose, file string, ref *v1beta1.SecretKeyRef) string {
	identifier := strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, strings.ToUpper(fmt.Sprintf("WEBHOOK_%s_%s_%s_%s", kind, webhook, purpose, toolHiveHash(ref.Name+"/"+ref.Key))))
	f[identifier] = secretFile{ref, file}
	return directoryOf(identifier) + "/" + file
}

func directoryOf(identifier string) string { return pathWebhooks + "/" + strings.ToLower(identifier) }

// toolHiveHash returns ToolHive's hash of a text in names: FNV-1a, 32 bits, over the text as its library dumps it.
func toolHiveHash(text string) string {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "(string)%s", text) // A hash never returns an error.
	return fmt.Sprintf("%x", h.Sum32())
}

// mounted returns the volumes. Each is mounted as a directory, not as a file as ToolHive does it: a file is never renewed, and the
// proxyrunner reads the secret of signatures anew for each request.
func (f secretFiles) mounted() (all []mounted) {
	for _, identifier := range slices.Sorted(maps.Keys(f)) {
		file, name := f[identifier], "whsec-"+toolHiveHash(identifier)
		all = append(all, mounted{
			corev1ac.Volume().WithName(name).WithSecret(corev1ac.SecretVolumeSource().WithSecretName(file.ref.Name).
				WithItems(corev1ac.KeyToPath().WithKey(file.ref.Key).WithPath(file.name))),
			readOnlyMount(name, directoryOf(identifier)),
		})
	}
	return all
}
