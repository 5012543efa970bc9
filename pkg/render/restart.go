// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"time"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// strategyImmediate is the restart strategy by which the proxy's pods are deleted at once, instead of being replaced
// one after the other.
const strategyImmediate = "immediate"

// ImmediateRestart returns the time at which a restart was asked for that is not to wait for new pods, and how it was
// written; ok is false when there was none.
func ImmediateRestart(server *v1beta1.MCPServer) (at time.Time, written string, ok bool) {
	written, ok = restartRequest(server)
	if !ok || server.Annotations[v1beta1.AnnotationRestartStrategy] != strategyImmediate {
		return time.Time{}, "", false
	}
	at, err := time.Parse(time.RFC3339, written)
	return at, written, err == nil
}

// restartRequest returns the time at which a restart of the proxy was asked for, as it was written, and whether one
// was. The value on the pod template is the request's own and not the time of its handling: the same request never
// restarts twice.
func restartRequest(server *v1beta1.MCPServer) (string, bool) {
	at := server.Annotations[v1beta1.AnnotationRestartedAt]
	if _, err := time.Parse(time.RFC3339, at); err != nil {
		return "", false
	}
	return at, true
}

func (r *renderer) noteRestart() {
	at, asked := r.server.Annotations[v1beta1.AnnotationRestartedAt]
	if !asked {
		return
	}
	if _, ok := restartRequest(r.server); !ok {
		r.notice(v1beta1.ConditionSpecValid, v1beta1.ReasonRestartRequestIgnored,
			"The annotation %s is %s, which is not an RFC 3339 time; nothing is restarted.",
			v1beta1.AnnotationRestartedAt, quote(at))
	}
}
