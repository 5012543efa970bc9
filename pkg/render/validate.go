// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/bounds"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// maxStatefulSetName is the longest name whose pods' label controller-revision-hash, the name with a dash
// and a hash of ten characters, is still a label value.
const maxStatefulSetName = content.LabelValueMaxLength - 11

// validate finds what cannot work, before anything is written: what the API server would refuse, as far as
// that is cheap to check, and what it would accept and the proxyrunner or the kubelet would fail on.
func (r *renderer) validate() {
	r.validateRead()
	r.validateName()
	r.validateImage()
	r.validateTransport()
	r.validateReplicas()
	r.validateServiceAccount()
	r.validateEnvironment()
	r.validateVolumes()
	r.validateOverrides()
	r.validateSessionStorage()
	r.validateLimits()
	r.validateRunner()
}

// namedFields is how many unknown fields a message names.
const namedFields = 5

// validateRead refuses a spec that was not read as it is stored. Nothing can say what an unknown field protects.
func (r *renderer) validateRead() {
	const next = "The MCP server could run with less protection than its spec requires, so Freehold writes no object. " +
		"Upgrade Freehold to a version that supports the CRD in this cluster, or "
	spec := &r.server.Spec
	if count := len(spec.UnknownFields); count > 0 {
		var fields []string
		for _, field := range spec.UnknownFields[:min(count, namedFields)] {
			fields = append(fields, quote("spec."+field))
		}
		names, what := strings.Join(fields, ", "), "remove the field."
		if count > 1 {
			what = "remove these fields."
		}
		if count > namedFields {
			names += fmt.Sprintf(" (+%d more)", count-namedFields)
		}
		r.invalidSpec(v1beta1.ReasonUnknownField, "This version of Freehold does not know %s. %s%s", names, next, what)
	}
	if lost := bounds.Dropped(r.server); lost != "" {
		r.invalidSpec(v1beta1.ReasonDroppedField, "The API server dropped %s from the manifest that was applied, as the CRD in this cluster does not have it. %s"+
			"write the manifest for that CRD and apply it with --validate=strict. Where the object is right as it is, remove its annotation %s.",
			lost, next, corev1.LastAppliedConfigAnnotation)
	}
	if spec.Malformed != "" {
		r.invalidSpec(v1beta1.ReasonMalformedSpec, "This version of Freehold cannot read the spec: %s. %scorrect the value.",
			quote(spec.Malformed), next)
	}
}

func (r *renderer) validateName() {
	refuse := func(format string, args ...any) {
		r.invalidSpec(v1beta1.ReasonInvalidName, "The name %s cannot be used: "+format,
			append([]any{quote(r.name)}, args...)...)
	}
	if r.name == appProxy {
		refuse("its backend would be selected by app=%s, which is the label of every proxy.", appProxy)
	}
	// The longest name made from it decides. The prefix makes the rest of a DNS label's rules easier, as it
	// starts with a letter.
	service := inventory.ProxyService.Name(r.name)
	if !r.stdio() {
		service = inventory.HeadlessService.Name(r.name)
	}
	if errs := validation.IsDNS1035Label(service); len(errs) > 0 {
		refuse("the Service %s could not be made: %s.", quote(service), errs[0])
	} else if len(r.name) > maxStatefulSetName {
		refuse("it is longer than %d characters, and the pods of its StatefulSet could not be labelled.",
			maxStatefulSetName)
	}
}

func (r *renderer) validateImage() {
	switch image := r.server.Spec.Image; {
	case image == "":
		r.invalidSpec(v1beta1.ReasonInvalidImage, "spec.image is missing.")
	case image != strings.TrimSpace(image):
		r.invalidSpec(v1beta1.ReasonInvalidImage, "spec.image %s starts or ends with white space.", quote(image))
	case strings.HasPrefix(image, "-"):
		r.invalidSpec(v1beta1.ReasonInvalidImage, "spec.image %s would be taken for an option of the proxyrunner.", quote(image))
	}
}

func (r *renderer) validateTransport() {
	switch r.transport {
	case v1beta1.TransportStdio, v1beta1.TransportSSE, v1beta1.TransportStreamableHTTP:
	default:
		r.invalidSpec(v1beta1.ReasonInvalidTransport, "spec.transport is %s; it must be stdio, sse or streamable-http.",
			quote(string(r.transport)))
	}
	switch mode := cmp.Or(r.server.Spec.ProxyMode, v1beta1.TransportStreamableHTTP); mode {
	case v1beta1.TransportSSE, v1beta1.TransportStreamableHTTP:
	default:
		r.invalidSpec(v1beta1.ReasonInvalidTransport, "spec.proxyMode is %s; it must be sse or streamable-http.",
			quote(string(mode)))
	}
	r.validatePort("proxyPort", r.proxyPort)
	r.validatePort("mcpPort", r.mcpPort)
	switch r.sessionAffinity {
	case corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone:
	default:
		r.invalidSpec(v1beta1.ReasonInvalidSessionAffinity, "spec.sessionAffinity is %s; it must be ClientIP or None.",
			quote(string(r.sessionAffinity)))
	}
}

func (r *renderer) validatePort(field string, port int32) {
	if len(validation.IsValidPortNum(int(port))) > 0 {
		r.invalidSpec(v1beta1.ReasonInvalidPort, "spec.%s is %d; it must be between 1 and 65535.", field, port)
	}
}

func (r *renderer) validateReplicas() {
	for _, count := range []struct {
		field string
		value *int32
	}{{"replicas", r.server.Spec.Replicas}, {"backendReplicas", r.server.Spec.BackendReplicas}} {
		if count.value != nil && *count.value < 0 {
			r.invalidSpec(v1beta1.ReasonInvalidReplicas, "spec.%s is %d; it must not be negative.", count.field, *count.value)
		}
	}
}

func (r *renderer) validateServiceAccount() {
	// An empty name is allowed: the pods then get the namespace's default ServiceAccount.
	if name := r.server.Spec.ServiceAccount; name != nil && *name != "" {
		if errs := validation.IsDNS1123Subdomain(*name); len(errs) > 0 {
			r.invalidSpec(v1beta1.ReasonInvalidServiceAccount, "spec.serviceAccount %s is not the name of a ServiceAccount: %s.",
				quote(*name), errs[0])
		}
	}
}

func (r *renderer) validateSessionStorage() {
	storage := r.server.Spec.SessionStorage
	if storage == nil {
		return
	}
	switch storage.Provider {
	case v1beta1.SessionStorageMemory:
		r.noteMemory(storage)
	case v1beta1.SessionStorageRedis:
		if strings.TrimSpace(storage.Address) == "" {
			r.invalidSpec(v1beta1.ReasonInvalidSessionStorage, "spec.sessionStorage.address is missing; provider redis needs it.")
		}
		if ref := storage.PasswordRef; ref != nil {
			r.validateSecretKey("spec.sessionStorage.passwordRef", ref.Name, ref.Key)
		}
	default:
		r.invalidSpec(v1beta1.ReasonInvalidSessionStorage, "spec.sessionStorage.provider is %s; it must be memory or redis.",
			quote(storage.Provider))
	}
	r.validateRedisTLS(storage)
	if storage.DB < 0 {
		r.invalidSpec(v1beta1.ReasonInvalidSessionStorage, "spec.sessionStorage.db is %d; it must not be negative.", storage.DB)
	}
}

// noteMemory reports fields about Redis beside a store in memory.
func (r *renderer) noteMemory(storage *v1beta1.SessionStorageConfig) {
	var ignored []string
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"address", storage.Address != ""}, {"db", storage.DB > 0}, {"keyPrefix", storage.KeyPrefix != ""}, {"passwordRef", storage.PasswordRef != nil},
	} {
		if field.set {
			ignored = append(ignored, "spec.sessionStorage."+field.name)
		}
	}
	if len(ignored) > 0 {
		r.notice(v1beta1.ConditionSpecValid, v1beta1.ReasonFieldsIgnored, "Some fields have no effect with provider memory: %s.",
			strings.Join(ignored, ", "))
	}
}

// validateRedisTLS checks how the MCPServer wants the proxy to speak TLS with the session store.
func (r *renderer) validateRedisTLS(storage *v1beta1.SessionStorageConfig) {
	tls := storage.TLS
	if tls == nil {
		return
	}
	const field = "spec.sessionStorage.tls"
	if storage.Provider != v1beta1.SessionStorageRedis {
		r.invalidSpec(v1beta1.ReasonInvalidSessionStorage, "%s needs provider redis.", field)
	}
	if ref := tls.CACertSecretRef; ref != nil {
		r.validateSecretKey(field+".caCertSecretRef", ref.Name, ref.Key)
		if tls.InsecureSkipVerify {
			r.invalidSpec(v1beta1.ReasonInvalidSessionStorage, "%s sets both insecureSkipVerify and caCertSecretRef; set only one.", field)
		}
	}
}

// noteSessionStorage warns of proxies that do not know each other's sessions.
func (r *renderer) noteSessionStorage(replicas int32) {
	if replicas > 1 && r.sessionRedis() == nil {
		r.notice(v1beta1.ConditionSessionStorageWarning, v1beta1.ReasonSessionStorageMissingForReplicas,
			"spec.replicas is %d, but the proxies share no session store; set spec.sessionStorage to redis.", replicas)
	}
}

// validateSecretKey checks the name of a Secret and of a key in it.
func (r *renderer) validateSecretKey(path, name, key string) {
	if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
		r.invalidSpec(v1beta1.ReasonInvalidSecretRef, "%s.name %s is not the name of a Secret: %s.", path, quote(name), errs[0])
	}
	if errs := validation.IsConfigMapKey(key); len(errs) > 0 {
		r.invalidSpec(v1beta1.ReasonInvalidSecretRef, "%s.key %s is not a key of a Secret: %s.", path, quote(key), errs[0])
	}
}

func indexed(path string, index int) string {
	return fmt.Sprintf("%s[%d]", path, index)
}
