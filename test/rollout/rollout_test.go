// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout holds the suite that asks what Freehold tells of rollouts: whether it is true, and the same with the
// controllers of two minor versions of Kubernetes. For each there is a control plane with one operator; each test has a
// namespace of its own. Scheduling, and all that controllers do, is real; what becomes of pods on their node is played,
// see kubelet.
package rollout

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/mod/semver"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/cluster/binaries"
	"github.com/freehold-dev/freehold/test/harness"
)

// atOnce is how many tests run at a time: all of them wait most of the time.
const atOnce = 24

func TestMain(m *testing.M) {
	flag.Parse()
	harness.AtOnce(atOnce)
	os.Exit(m.Run())
}

// site is a control plane with one operator, which watches all namespaces.
type site struct {
	*harness.Env
	kubelet *kubelet
	// controllers is the version of the controllers, like "v1.36.4".
	controllers string
}

// since tells whether the controllers are of a minor version of Kubernetes, like "v1.37", or of a later one.
func (s *site) since(minor string) bool {
	return semver.Compare(semver.MajorMinor(s.controllers), minor) >= 0
}

// TestRollouts is the table: versions, strategies, situations.
func TestRollouts(t *testing.T) {
	for _, program := range []binaries.Tool{binaries.KubeControllerManager, binaries.EarlierControllerManager} {
		version := versionOf(t, program)
		t.Run(semver.MajorMinor(version), func(t *testing.T) {
			s := newSite(t, version, program == binaries.EarlierControllerManager)
			t.Run("cases", func(t *testing.T) {
				play := func(by strategy, what string, situations []situation) {
					for _, situation := range situations {
						t.Run(what+"/"+situation.name, func(t *testing.T) {
							harness.Long(t)
							t.Parallel()
							situation.play(newScene(t, s, by))
						})
					}
				}
				for _, by := range strategies {
					play(by, by.name, situations)
				}
				play(partitioned, partitioned.name, partitionSituations)
				play(rollingUpdate, "proxy", proxySituations)
			})
			t.Run("requests", func(t *testing.T) { checkRequests(t, s) })
		})
	}
}

// versionOf asks a program of Kubernetes for its version, like "v1.36.4": one that was not built here may have another
// than is expected.
func versionOf(t *testing.T, program binaries.Tool) string {
	t.Helper()
	found, err := binaries.Finder{}.Ensure(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), found[program], "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	version, ok := strings.CutPrefix(strings.TrimSpace(string(output)), "Kubernetes ")
	if !ok || !semver.IsValid(version) {
		t.Fatalf("%s has no version: %q", program, output)
	}
	return version
}

// newSite starts the control plane, the node and the operator.
func newSite(t *testing.T, controllers string, earlier bool) *site {
	t.Helper()
	env, err := harness.New(t.Context(), cluster.Options{NoFakePods: true, AuditBodies: true, EarlierControllers: earlier})
	if err != nil {
		t.Fatalf("no control plane for the suite: %v", err)
	}
	t.Cleanup(func() {
		if err := env.Close(); err != nil {
			t.Errorf("the control plane did not end well: %v", err)
		}
	})
	s := &site{Env: env, kubelet: startKubelet(t, env), controllers: controllers}
	env.Operator(t)
	return s
}

// checkRequests looks at everything that was asked of the API server.
func checkRequests(t *testing.T, s *site) {
	violations, requests, err := s.Violations(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("looked at %d requests of the operator", requests)
	for _, v := range violations {
		t.Errorf("a request that should not have been: %v", v)
	}

	// The status of a workload is its controller's to write, whose version the requests tell as well.
	workloads := audit.Any(audit.Resource("apps", "statefulsets"), audit.Resource("apps", "deployments"))
	writes, _, err := s.Audit.Since(audit.Mark{}, audit.Writes(), workloads, func(e *audit.Event) bool { return e.Subresource == "status" })
	if err != nil {
		t.Fatal(err)
	}
	byController := map[string]int{}
	for _, e := range writes {
		if !strings.HasPrefix(e.User, "system:serviceaccount:kube-system:") {
			t.Errorf("the status of a workload is written by another than its controller: %v", e)
			continue
		}
		if program, _, _ := strings.Cut(e.UserAgent, " "); program != "kube-controller-manager/"+s.controllers &&
			program != string(binaries.EarlierControllerManager)+"/"+s.controllers {
			t.Errorf("a controller of another version than %s: %v", s.controllers, e)
		}
		byController[e.Resource]++
	}
	for _, resource := range []string{"statefulsets", "deployments"} {
		if byController[resource] == 0 {
			t.Errorf("the audit log has no write of %s/status at all, so it proves nothing", resource)
		}
	}
	t.Logf("writes of status by controllers: %v", byController)
}
