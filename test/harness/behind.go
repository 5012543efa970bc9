// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"path/filepath"
	"testing"

	"github.com/freehold-dev/freehold/hack/faultproxy"
	"github.com/freehold-dev/freehold/hack/operator"
)

// Proxy runs a proxy in front of the API server, for operators that OperateThrough runs, until the test ends. It sends
// requests in the name of the operator's ServiceAccount, so that the Invariants hold for them too. The configuration
// in the options is not looked at.
func (e *Env) Proxy(t *testing.T, options faultproxy.Options) *faultproxy.Proxy {
	t.Helper()
	var err error
	options.Config, err = e.Cluster.ServiceAccountConfig(t.Context(), operator.Namespace, operator.ServiceAccount)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := faultproxy.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Errorf("the proxy did not end well: %v", err)
		}
	})
	return proxy
}

// OperateThrough is Operate for an operator all of whose requests go through the proxy.
func (ns *Namespace) OperateThrough(t *testing.T, proxy *faultproxy.Proxy, args ...string) *operator.Process {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := proxy.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	return ns.Operate(t, append([]string{"--kubeconfig=" + kubeconfig}, args...)...)
}
