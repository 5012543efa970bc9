// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestFlowControl applies deploy/options/flow-control, and reads from the API server's metrics at which level it has put the
// operator's requests: those about its lease with Kubernetes' own leases, the others at the operator's.
func TestFlowControl(t *testing.T) {
	ns := env.Namespace(t)
	kubectl := ns.Kubectl(t)
	manifests := filepath.Join("..", "..", "..", "deploy", "options", "flow-control")
	for _, name := range []string{"prioritylevel.yaml", "flowschemas.yaml"} {
		file := filepath.Join(manifests, name)
		kubectl.Run(t, "apply", "--server-side", "-f", file)
		t.Cleanup(func() {
			if _, err := kubectl.Try(context.WithoutCancel(t.Context()), harness.Call{Args: []string{"delete", "-f", file}}); err != nil {
				t.Error(err)
			}
		})
	}
	ns.Operate(t, "--leader-elect=true", "--leader-elect-resource-namespace=freehold-system")
	ns.Create(t, harness.Server("web", v1beta1.TransportStreamableHTTP))
	ns.AwaitSettled(t, "web")
	for schema, level := range map[string]string{"freehold": "freehold", "freehold-leader-election": "leader-election"} {
		harness.Eventually(t, "requests of "+schema, func(ctx context.Context) error {
			metrics, err := ns.Core.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
			if err != nil {
				return err
			}
			dispatched := fmt.Sprintf("apiserver_flowcontrol_dispatched_requests_total{flow_schema=%q,priority_level=%q}", schema, level)
			if !strings.Contains(string(metrics), dispatched) {
				return fmt.Errorf("the API server has no %s", dispatched)
			}
			return nil
		})
	}
}
