// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// The first releases of ToolHive whose proxyrunner is known to read a key of the RunConfig. Earlier ones silently
// ignore the key.
var (
	sinceMetricsPort        = version.MustParseSemantic("0.47.0")
	sinceMaxRequestBodySize = version.MustParseSemantic("0.47.0")
	sinceRedisTLS           = version.MustParseSemantic("0.52.0")
	sinceProxyReadTimeout   = version.MustParseSemantic("0.58.0")
)

// sinceSessionOwners is the first release whose proxyrunner serves only those sessions of a shared store that record their
// owner.
var sinceSessionOwners = version.MustParseSemantic("0.58.0")

// RunnerVersion returns the release of the proxyrunner, as the tag of its image says; nil where the tag says nothing,
// such as latest, a digest or a tag of the user's own.
func RunnerVersion(image string) *version.Version {
	image, _, _ = strings.Cut(image, "@")
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

// runnerImage returns the image of the proxyrunner.
func (r *renderer) runnerImage() string { return cmp.Or(r.opts.RunnerImage, DefaultRunnerImage) }

// runner returns the release of the proxyrunner; nil where that is not known.
func (r *renderer) runner() *version.Version { return RunnerVersion(r.runnerImage()) }

// validateRunner checks that the proxyrunner honours what it is asked for. Where an older one would leave the MCPServer
// with less protection, such as plain text to Redis, nothing is rendered.
func (r *renderer) validateRunner() {
	spec, runner, image := &r.server.Spec, r.runner(), quote(r.runnerImage())
	if r.redisTLS() != nil {
		switch {
		case runner == nil:
			r.noteUnknownRunner("Proxyrunners before v%s ignore TLS for the session store and speak plain text with Redis; "+
				"make sure that it is newer.", sinceRedisTLS)
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
		{"spec.proxyReadTimeout", r.readTimeoutText() != "", sinceProxyReadTimeout},
	} {
		switch {
		case !limit.set:
		case runner == nil:
			r.noteUnknownRunner("Proxyrunners before v%s ignore %s; make sure that it is newer.", limit.since, limit.field)
		case runner.LessThan(limit.since):
			r.notice(v1beta1.ConditionSpecValid, v1beta1.ReasonRunnerTooOld,
				"%s has no effect: the proxyrunner is %s, and those before v%s ignore the field. "+
					"Run the operator with a newer --runner-image.", limit.field, image, limit.since)
		}
	}
}

// noteUnknownRunner records what a proxyrunner may ignore whose version is not known.
func (r *renderer) noteUnknownRunner(format string, args ...any) {
	r.notice(v1beta1.ConditionSpecValid, v1beta1.ReasonRunnerVersionUnknown, "The tag of the proxyrunner's image %s does not show its version. %s",
		quote(r.runnerImage()), fmt.Sprintf(format, args...))
}

// LosesSessions reports whether the wanted proxyrunner does not serve the sessions that one of the proxy's pods has begun
// in a shared store. Where a tag names no version it is false.
func LosesSessions(pods []*workload.Pod, opts Options) bool {
	wanted := RunnerVersion(cmp.Or(opts.RunnerImage, DefaultRunnerImage))
	if wanted == nil || wanted.LessThan(sinceSessionOwners) {
		return false
	}
	return slices.ContainsFunc(pods, func(pod *workload.Pod) bool {
		return slices.ContainsFunc(pod.Containers, func(c workload.Container) bool {
			runs := RunnerVersion(c.Image)
			return c.Name == workload.ProxyContainer && runs != nil && runs.LessThan(sinceSessionOwners)
		})
	})
}
