// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"time"

	"k8s.io/kube-openapi/pkg/validation/strfmt"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// validateLimits checks limits of the proxy.
func (r *renderer) validateLimits() {
	spec := &r.server.Spec
	if spec.MaxRequestBodySize < 0 {
		r.invalidSpec(v1beta1.ReasonInvalidLimit, "spec.maxRequestBodySize is %d; it must not be negative.", spec.MaxRequestBodySize)
	}
	switch timeout, err := r.readTimeout(); {
	case err != nil:
		r.invalidSpec(v1beta1.ReasonInvalidLimit, "spec.proxyReadTimeout %s is not a duration such as 1m30s.", quote(spec.ProxyReadTimeout))
	case timeout < 0:
		r.invalidSpec(v1beta1.ReasonInvalidLimit, "spec.proxyReadTimeout is %s; it must not be negative.", quote(spec.ProxyReadTimeout))
	}
}

// readTimeout is spec.proxyReadTimeout; 0 stands for the proxyrunner's default.
//
// The API server accepts more than Go does, such as 2d and 1 week, and its own parser says what these mean.
func (r *renderer) readTimeout() (time.Duration, error) {
	if r.server.Spec.ProxyReadTimeout == "" {
		return 0, nil
	}
	return strfmt.ParseDuration(r.server.Spec.ProxyReadTimeout)
}

// readTimeoutText is spec.proxyReadTimeout, which is valid, as the proxyrunner reads durations; empty for its default.
func (r *renderer) readTimeoutText() string {
	timeout, err := r.readTimeout()
	if err != nil || timeout <= 0 {
		return ""
	}
	return timeout.String()
}
