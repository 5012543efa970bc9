// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring holds the suite about what the operator lets others know. Its metrics are read by those who may and
// those who may not, and by a real Prometheus; where that is not installed its test is skipped, unless FREEHOLD_PROMETHEUS
// is "required". A collector takes traces from the operator and from the API server. Events and logs are read too.
package monitoring

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/harness"
)

// env is the control plane of all tests of this package, and traces is the collector that its API server sends to.
var (
	env    *harness.Env
	traces *collector
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if traces, err = newCollector(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "no collector for the suite:", err)
		return 1
	}
	defer traces.close()
	options := cluster.Options{AuditBodies: true, APIServerArgs: []string{"--tracing-config-file=" + traces.config}}
	return harness.Suite{Env: &env, Options: options}.Run(m)
}

// manifests of the option for secure metrics: the rights of the operator and of who reads.
const manifests = "../../deploy/options/secure-metrics/rbac.yaml"

// allowReviews gives the operator the right to ask who somebody is.
func allowReviews(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(manifests)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := operator.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := operator.Apply(t.Context(), env.Config, operator.Namespace, objects); err != nil {
		t.Fatal(err)
	}
}
