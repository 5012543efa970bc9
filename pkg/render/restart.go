// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"time"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// strategyImmediate is the restart strategy by which ToolHive's operator deletes the proxy's pods. It lacks
// the right to, and so does Freehold.
const strategyImmediate = "immediate"

// restartRequest is the time at which a restart of the proxy was asked for, as it was written, and whether
// one was. The value on the pod template is the request's own and not the time of its handling: the same
// request never restarts twice.
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
		r.notice(v1beta1.ConditionSpecValid, ReasonRestartRequestIgnored,
			"The annotation %s is %s, which is not an RFC 3339 time; nothing is restarted.",
			v1beta1.AnnotationRestartedAt, quote(at))
		return
	}
	if r.server.Annotations[v1beta1.AnnotationRestartStrategy] == strategyImmediate {
		r.notice(v1beta1.ConditionSpecValid, ReasonRestartIsRolling,
			"The annotation %s is %s; proxies are restarted one after the other all the same.",
			v1beta1.AnnotationRestartStrategy, strategyImmediate)
	}
}
