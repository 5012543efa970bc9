// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// TestRunnerReachesItsOwnObjectsAlone: a proxyrunner reads its StatefulSet and lists pods of its name; with stdio it has to list all pods,
// by a label, and attaches to the only one of its StatefulSet.
func TestRunnerReachesItsOwnObjectsAlone(t *testing.T) {
	const set = `[{"verbs":["get"],"apiGroups":["apps"],"resources":["statefulsets"],"resourceNames":["fetch"]},`
	const named = set + `{"verbs":["list"],"apiGroups":[""],"resources":["pods"],"resourceNames":["fetch"]}]`
	for transport, want := range map[v1beta1.Transport]string{
		v1beta1.TransportStreamableHTTP: named,
		v1beta1.TransportSSE:            named,
		v1beta1.TransportStdio: set + `{"verbs":["list"],"apiGroups":[""],"resources":["pods"]},` +
			`{"verbs":["create"],"apiGroups":[""],"resources":["pods/attach"],"resourceNames":["fetch-0"]}]`,
	} {
		role := configOf[*rbacv1ac.RoleApplyConfiguration](t, renderServer(t, withTransport(transport)))
		if diff := cmp.Diff(want, string(jsonOf(t, role.Rules))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", transport, diff)
		}
	}
}
