// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// DefaultScopes are supported where spec.oidcConfigRef.scopes is empty.
var DefaultScopes = []string{"openid", "profile", "email", "offline_access"}

// Input is an authorization server and the parts that it needs of the MCPServer next to which it runs.
type Input struct {
	Spec *v1beta1.EmbeddedAuthServerConfig
	// Namespace and Name of the MCPServer.
	Namespace, Name string
	// OIDC reports whether spec.oidcConfigRef is set and usable.
	OIDC bool
	// Audience and ResourceURL of spec.oidcConfigRef, with their defaults.
	Audience, ResourceURL string
	// Issuer is the one whose tokens the proxy accepts, that of the MCPOIDCConfig; empty for any.
	Issuer string
	// Scopes of spec.oidcConfigRef, without a default.
	Scopes    []string
	ProxyPort int32
	// TokenExchange reports whether the MCPServer also refers to a configuration of type tokenExchange.
	TokenExchange bool
	// Replicas of the proxy; nil counts as one.
	Replicas *int32
	// Bundles are the ConfigMaps that ConfigMaps names, by name; those that do not exist are left out.
	Bundles map[string]*corev1.ConfigMap
	// Runner is the release of the proxyrunner; nil where it is not known.
	Runner *version.Version
}

// Problem is something to report to the user. A refusal has the reason ReasonInvalidConfig (on AuthServerRefValidated it is
// ReasonAuthServerRefInvalidConfig), ReasonMultiUpstreamNotSupported, ReasonInvalidCABundle or ReasonRunnerTooOld. A notice
// has ReasonInvalidConfig where nobody can log in, ReasonSessionStorageMissingForReplicas where replicas know different
// things, ReasonFieldsIgnored where a field does nothing, ReasonRunnerTooOld where it does nothing with this proxyrunner, and
// ReasonRunnerVersionUnknown where that may be so. The message names fields, and no secret.
type Problem struct {
	Reason, Message string
}

// Result is what the MCPServer's proxy gets.
type Result struct {
	Document *Document
	// Scopes are those of oidc_config.
	Scopes []string
	// Env goes after the user's variables, and wins over them.
	Env     []*corev1ac.EnvVarApplyConfiguration
	Volumes []*corev1ac.VolumeApplyConfiguration
	Mounts  []*corev1ac.VolumeMountApplyConfiguration
	// CAChecksum is the annotation of the pod that rolls the proxy when certificate authorities change; empty for none.
	CAChecksum string
	// Notices are about fields that work otherwise than they say.
	Notices []Problem
	// Unshared says what several pods of the proxy would not share, and what to do about it, as the end of a sentence; empty for
	// nothing.
	Unshared string
}

// Render returns what the proxy gets, or, where that cannot work, all problems: first those of the configuration alone.
func Render(in Input) (*Result, []Problem) {
	config := &checker{}
	g := config.config(in.Spec)
	problems := withReason(v1beta1.ReasonInvalidConfig, config.found)
	if in.Spec == nil {
		return nil, problems
	}

	ca := &checker{}
	checksum := ca.checkBundles(in.Spec, in.Bundles)
	problems = append(problems, withReason(v1beta1.ReasonInvalidCABundle, ca.found)...)

	if n := len(in.Spec.UpstreamProviders); n > 1 {
		problems = append(problems, Problem{v1beta1.ReasonMultiUpstreamNotSupported, fmt.Sprintf(
			"%s.upstreamProviders has %d entries, and an MCPServer can use one only. Remove the others, or use a VirtualMCPServer.", root, n)})
	}

	server := &checker{}
	server.requirements(&in, &g)
	problems = append(problems, withReason(v1beta1.ReasonInvalidConfig, server.found)...)

	tooOld, older := checkRunner(in.Spec, in.Runner)
	problems = append(problems, tooOld...)
	if len(problems) > 0 {
		return nil, problems
	}

	parts := podParts(in.Spec)
	result := &Result{
		Document: document(&in), Scopes: in.Scopes,
		Env: parts.env, Volumes: parts.volumes, Mounts: parts.mounts,
		CAChecksum: checksum, Notices: append(notices(&in, &g), older...), Unshared: unshared(in.Spec),
	}
	if len(in.Scopes) == 0 {
		result.Scopes = slices.Clone(DefaultScopes)
	}
	return result, nil
}

func withReason(reason string, messages []string) []Problem {
	var problems []Problem
	for _, message := range messages {
		problems = append(problems, Problem{reason, message})
	}
	return problems
}

// ConfigMaps returns the names of the ConfigMaps with certificate authorities to which the configuration refers, sorted.
func ConfigMaps(spec *v1beta1.EmbeddedAuthServerConfig) []string {
	if spec == nil {
		return nil
	}
	names := map[string]bool{}
	for _, b := range bundles(spec) {
		names[b.ref.ConfigMapRef.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
