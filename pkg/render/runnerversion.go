// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// The first releases of ToolHive whose proxyrunner is known to read a key of the RunConfig. Those before leave the key
// out of account without a word.
var (
	sinceMaxRequestBodySize = version.MustParseSemantic("0.47.0")
	sinceRedisTLS           = version.MustParseSemantic("0.52.0")
	sinceProxyReadTimeout   = version.MustParseSemantic("0.58.0")
)

// runnerVersion is the release of the proxyrunner, as the tag of its image says; nil where the tag says nothing, such as
// latest, a digest or a tag of the user's own.
func (r *renderer) runnerVersion() *version.Version {
	image, _, _ := strings.Cut(cmp.Or(r.opts.RunnerImage, DefaultRunnerImage), "@")
	_, tag, tagged := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	if !tagged {
		return nil
	}
	found, err := version.ParseSemantic(tag)
	if err != nil {
		return nil
	}
	return found
}

// validateRunner checks that the proxyrunner honours what it is asked for. Where an older one would leave the MCPServer
// with less protection, which plain text to Redis is, nothing is rendered.
func (r *renderer) validateRunner() {
	spec, runner := &r.server.Spec, r.runnerVersion()
	image := quote(cmp.Or(r.opts.RunnerImage, DefaultRunnerImage))
	if r.redisTLS() != nil {
		switch {
		case runner == nil:
			r.notice(v1beta1.ConditionSpecValid, v1beta1.ReasonRunnerVersionUnknown,
				"The tag of the proxyrunner's image %s does not tell its version. Those before v%s ignore TLS for the session "+
					"store and speak plain text with Redis; make sure that it is newer.", image, sinceRedisTLS)
		case runner.LessThan(sinceRedisTLS):
			r.invalidSpec(v1beta1.ReasonRunnerTooOld,
				"TLS for the session store cannot be honoured: the proxyrunner is %s, and those before v%s ignore it and speak "+
					"plain text with Redis. Run the operator with a newer --runner-image.", image, sinceRedisTLS)
		}
	}
	for _, limit := range []struct {
		field string
		set   bool
		since *version.Version
	}{
		{"spec.maxRequestBodySize", spec.MaxRequestBodySize > 0, sinceMaxRequestBodySize},
		{"spec.proxyReadTimeout", spec.ProxyReadTimeout != "", sinceProxyReadTimeout},
	} {
		if limit.set && runner != nil && runner.LessThan(limit.since) {
			r.notice(v1beta1.ConditionSpecValid, v1beta1.ReasonRunnerTooOld,
				"%s has no effect: the proxyrunner is %s, and those before v%s ignore the field. "+
					"Run the operator with a newer --runner-image.", limit.field, image, limit.since)
		}
	}
}
