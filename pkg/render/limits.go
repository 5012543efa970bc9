// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"k8s.io/kube-openapi/pkg/validation/strfmt"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// readTimeout is spec.proxyReadTimeout as the proxyrunner reads durations; empty for the runner's default.
//
// The API server accepts more than Go does, such as 2d and 1 week, and its own parser says what these mean.
func (r *renderer) readTimeout() string {
	text := r.server.Spec.ProxyReadTimeout
	if text == "" {
		return ""
	}
	timeout, err := strfmt.ParseDuration(text)
	switch {
	case err != nil:
		r.invalidSpec(v1beta1.ReasonInvalidLimit, "spec.proxyReadTimeout %s is not a duration such as 1m30s.", quote(text))
		return ""
	case timeout < 0:
		r.invalidSpec(v1beta1.ReasonInvalidLimit, "spec.proxyReadTimeout is %s; it must not be negative.", quote(text))
		return ""
	case timeout == 0:
		return ""
	}
	return timeout.String()
}

// validateLimits checks limits of the proxy.
func (r *renderer) validateLimits() {
	spec := &r.server.Spec
	if spec.MaxRequestBodySize < 0 {
		r.invalidSpec(v1beta1.ReasonInvalidLimit, "spec.maxRequestBodySize is %d; it must not be negative.", spec.MaxRequestBodySize)
	}
}
