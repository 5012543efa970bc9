// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Where environment variables come from, as messages name it.
const (
	sourceOperator     = "the operator"
	sourceEnv          = "spec.env"
	sourceSecrets      = "spec.secrets"
	sourcePodTemplate  = "spec.podTemplateSpec"
	sourceProxyEnv     = "spec.resourceOverrides.proxyDeployment.env"
	sourceRedisSecrets = "the password of the session store"
	sourceOIDC         = "spec.oidcConfigRef"
	sourceTelemetry    = "spec.telemetryConfigRef"
	sourceExternalAuth = "spec.externalAuthConfigRef"
	sourceAuthServer   = "the embedded authorization server"
)

// duplicate is one name that several sources gave different values.
type duplicate struct {
	what, winner string
	losers       []string
}

// variable is an environment variable and its source.
type variable struct {
	source string
	config *corev1ac.EnvVarApplyConfiguration
}

// variables of one source.
func variables(source string, configs ...*corev1ac.EnvVarApplyConfiguration) []variable {
	vars := make([]variable, 0, len(configs))
	for _, config := range configs {
		vars = append(vars, variable{source, config})
	}
	return vars
}

// mergeEnv keeps the last variable of each name, at its place. An apply that names one twice is refused.
func (r *renderer) mergeEnv(tier string, vars []variable) []*corev1ac.EnvVarApplyConfiguration {
	last := map[string]int{}
	for i, v := range vars {
		last[*v.config.Name] = i
	}
	var merged []*corev1ac.EnvVarApplyConfiguration
	losers := map[string][]string{}
	for i, v := range vars {
		name := *v.config.Name
		if last[name] == i {
			merged = append(merged, v.config)
			continue
		}
		if !equality.Semantic.DeepEqual(v.config, vars[last[name]].config) && !slices.Contains(losers[name], v.source) {
			losers[name] = append(losers[name], v.source)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(losers)) {
		what := fmt.Sprintf("variable %s of the %s", quote(name), tier)
		r.duplicates = append(r.duplicates, duplicate{what, vars[last[name]].source, losers[name]})
	}
	return merged
}

// noteDuplicates records, in one notice, which of several values were taken.
func (r *renderer) noteDuplicates() {
	if len(r.duplicates) == 0 {
		return
	}
	parts := make([]string, 0, len(r.duplicates))
	for _, d := range r.duplicates {
		if slices.Equal(d.losers, []string{d.winner}) {
			parts = append(parts, d.what+" (the last one is used)")
			continue
		}
		parts = append(parts, fmt.Sprintf("%s (taken from %s, not from %s)", d.what, d.winner, strings.Join(d.losers, " or ")))
	}
	r.notice(v1beta1.ConditionSpecValid, v1beta1.ReasonDuplicatesMerged,
		"Some names are given several different values: %s.", strings.Join(parts, "; "))
}

// envValue returns a variable with a plain value. An empty value is not written: the API server stores it as none, and
// a field that is applied but never stored would always look like a difference.
func envValue(name, value string) *corev1ac.EnvVarApplyConfiguration {
	v := corev1ac.EnvVar().WithName(name)
	if value != "" {
		v.WithValue(value)
	}
	return v
}

// envSecret returns a variable with the value of a Secret's key.
func envSecret(name, secret, key string) *corev1ac.EnvVarApplyConfiguration {
	return corev1ac.EnvVar().WithName(name).WithValueFrom(corev1ac.EnvVarSource().
		WithSecretKeyRef(corev1ac.SecretKeySelector().WithName(secret).WithKey(key)))
}

func envValues(list []v1beta1.EnvVar) []*corev1ac.EnvVarApplyConfiguration {
	vars := make([]*corev1ac.EnvVarApplyConfiguration, 0, len(list))
	for _, v := range list {
		vars = append(vars, envValue(v.Name, v.Value))
	}
	return vars
}
