// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// TestRunnerRules: a proxyrunner reads two things, and attaches to a pod where that is how it talks to the MCP server.
func TestRunnerRules(t *testing.T) {
	const reading = `{"verbs":["get"],"apiGroups":["apps"],"resources":["statefulsets"]},` +
		`{"verbs":["list"],"apiGroups":[""],"resources":["pods"]}`
	for transport, want := range map[v1beta1.Transport]string{
		v1beta1.TransportStreamableHTTP: "[" + reading + "]",
		v1beta1.TransportSSE:            "[" + reading + "]",
		v1beta1.TransportStdio:          "[" + reading + `,{"verbs":["create"],"apiGroups":[""],"resources":["pods/attach"]}]`,
	} {
		role := configOf[*rbacv1ac.RoleApplyConfiguration](t, renderServer(t, withTransport(transport)))
		if diff := cmp.Diff(want, string(jsonOf(t, role.Rules))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", transport, diff)
		}
	}
}
