// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"time"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// rateLimit is spec.rateLimiting with its periods as Go writes durations, which is how ToolHive's operator
// writes them down.
func (r *renderer) rateLimit() *v1beta1.RateLimitConfig {
	const path = "spec.rateLimiting"
	spec := &r.server.Spec
	limits := spec.RateLimiting.DeepCopy()
	if storage := spec.SessionStorage; storage == nil || storage.Provider != v1beta1.SessionStorageRedis {
		r.invalidRateLimit("%s needs spec.sessionStorage with provider redis.", path)
	}
	if limits.Shared == nil && limits.PerUser == nil && len(limits.Tools) == 0 {
		r.invalidRateLimit("%s sets none of shared, perUser and tools.", path)
	}
	r.bucket(path+".shared", limits.Shared)
	r.perUserBucket(path+".perUser", limits.PerUser)
	seen := map[string]bool{}
	for i := range limits.Tools {
		tool, at := &limits.Tools[i], indexed(path+".tools", i)
		switch {
		case tool.Name == "":
			r.invalidRateLimit("%s.name is missing.", at)
		case seen[tool.Name]:
			r.invalidRateLimit("%s.name %s occurs twice.", at, quote(tool.Name))
		}
		seen[tool.Name] = true
		if tool.Shared == nil && tool.PerUser == nil {
			r.invalidRateLimit("%s sets neither shared nor perUser.", at)
		}
		r.bucket(at+".shared", tool.Shared)
		r.perUserBucket(at+".perUser", tool.PerUser)
	}
	r.noteOneUser(limits)
	return limits
}

// noteOneUser reports limits for each user that all clients share: without a check of tokens the proxyrunner takes each of them for
// the local user. The CustomResourceDefinition and ToolHive's operator accept any reference for external authentication in its place.
func (r *renderer) noteOneUser(limits *v1beta1.RateLimitConfig) {
	perUser := limits.PerUser != nil || slices.ContainsFunc(limits.Tools, func(t v1beta1.ToolRateLimitConfig) bool { return t.PerUser != nil })
	if perUser && r.server.Spec.OIDCConfigRef == nil {
		r.notice(v1beta1.ConditionRateLimitConfigValid, v1beta1.ReasonRateLimitConfigValid, "rateLimiting is valid. Mind that without "+
			"spec.oidcConfigRef the proxy takes all clients for one user, so they share the buckets of perUser")
	}
}

func (r *renderer) perUserBucket(path string, bucket *v1beta1.RateLimitBucket) {
	spec := &r.server.Spec
	if bucket != nil && spec.OIDCConfigRef == nil && spec.ExternalAuthConfigRef == nil {
		r.invalid(v1beta1.ConditionRateLimitConfigValid, v1beta1.ReasonPerUserRequiresAuth,
			"%s needs spec.oidcConfigRef: without it the proxy cannot tell users apart.", path)
	}
	r.bucket(path, bucket)
}

// bucket checks a bucket and writes its period in the canonical form.
func (r *renderer) bucket(path string, bucket *v1beta1.RateLimitBucket) {
	if bucket == nil {
		return
	}
	if bucket.MaxTokens < 1 {
		r.invalidRateLimit("%s.maxTokens is %d; it must be at least 1.", path, bucket.MaxTokens)
	}
	period, err := time.ParseDuration(bucket.RefillPeriod)
	switch {
	case err != nil:
		r.invalidRateLimit("%s.refillPeriod %s is not a duration such as 1m30s.", path, quote(bucket.RefillPeriod))
	case period <= 0:
		r.invalidRateLimit("%s.refillPeriod %s is not positive.", path, quote(bucket.RefillPeriod))
	default:
		bucket.RefillPeriod = period.String()
	}
}

func (r *renderer) invalidRateLimit(format string, args ...any) {
	r.invalid(v1beta1.ConditionRateLimitConfigValid, v1beta1.ReasonInvalidRateLimit, format, args...)
}
