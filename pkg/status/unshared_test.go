// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// A proxy that another field manager has scaled warns of sessions, and of what an authorization server keeps, that its pods do not
// share. What the spec asks for itself is reported elsewhere.
func TestAScaledProxyWarnsOfWhatItsPodsDoNotShare(t *testing.T) {
	const unshared = "each has a signing key of its own. Set it."
	for name, test := range map[string]struct {
		pods   int32
		shared bool
		spec   func(*v1beta1.MCPServerSpec)
		state  string
		want   string
	}{
		"one pod":         {pods: 1, state: unshared},
		"several pods":    {pods: 2, want: "The proxy's Deployment is scaled to several pods, but they share no session store; set spec.sessionStorage to redis."},
		"shared sessions": {pods: 2, shared: true},
		"an authorization server": {
			pods: 2, shared: true, state: unshared, want: "The proxy's Deployment is scaled to several pods, and each has a signing key of its own. Set it.",
		},
		"both": {
			pods: 3, state: unshared, want: "The proxy's Deployment is scaled to several pods, but they share no session store; set spec.sessionStorage to redis. " +
				"And each has a signing key of its own. Set it.",
		},
		"as the spec asks": {pods: 2, state: unshared, spec: func(s *v1beta1.MCPServerSpec) { s.Replicas = new(int32(2)) }},
		"stdio":            {pods: 2, state: unshared, spec: func(s *v1beta1.MCPServerSpec) { s.Transport = v1beta1.TransportStdio }},
	} {
		t.Run(name, func(t *testing.T) {
			o := status.Observation{Server: server(), Deployment: &workload.Deployment{}, SharedSessions: test.shared, Unshared: test.state}
			o.Server.Spec.Transport, o.Deployment.Replicas = v1beta1.TransportStreamableHTTP, &test.pods
			if test.spec != nil {
				test.spec(&o.Server.Spec)
			}
			got := find(status.Compute(o, noon), v1beta1.ConditionSessionStorageWarning)
			if warns := got.Status == metav1.ConditionTrue; warns != (test.want != "") || warns && (got.Reason != "SessionStorageMissingForReplicas" || got.Message != test.want) {
				t.Errorf("got %+v, want %q", got, test.want)
			}
		})
	}
}
