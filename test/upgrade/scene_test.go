// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/test/documents"
	"github.com/freehold-dev/freehold/test/harness"
)

// scene is somebody who has Freehold installed and follows docs/upgrade.md. The operator's pods are fake; processes stand in for them.
type scene struct {
	*harness.Namespace
	kubectl *harness.Kubectl
	// earlier is the last release; nil where the test does without.
	earlier *operator.Release
}

// newScene installs Freehold as the documentation says, by the files in the directory deploy/ below the root: first the definitions,
// which the present plugin does not print for the last release.
func newScene(t *testing.T, root string) *scene {
	t.Helper()
	s := &scene{}
	t.Cleanup(func() { // The next test's operator watches all namespaces, and this one ends before.
		if err := s.vanish(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("the namespace is still there: %v", err)
		}
	})
	s.Namespace = env.Namespace(t)
	s.kubectl = s.Kubectl(t)
	s.kubectl.Run(t, "apply", "--server-side", "-f", filepath.Join(root, "deploy", "install.yaml"))
	s.kubectl.Run(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=1m")
	s.kubectl.Run(t, "rollout", "status", "-n", operator.Namespace, "deployment/freehold", "--timeout=3m")
	if err := env.Installed(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// vanish waits until the namespace is gone, which is being deleted. No operator is there any more that would release what MCPServers refer to.
func (s *scene) vanish(ctx context.Context) error {
	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		return err
	}
	for _, config := range managers.Configs() {
		objects := client.Resource(config.GroupVersionResource()).Namespace(s.Name)
		list, err := objects.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			_, err := objects.Patch(ctx, list.Items[i].GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	ctx, cancel := harness.WithinPace(ctx, harness.Timeout)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, harness.Poll, true, func(ctx context.Context) (bool, error) {
		_, err := s.Core.CoreV1().Namespaces().Get(ctx, s.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

// lastRelease returns the last release, or skips the test where it cannot be had.
func lastRelease(t *testing.T) *operator.Release {
	t.Helper()
	release, err := operator.Earlier(t.Context(), os.Stderr)
	if missing, ok := errors.AsType[*operator.NoHistoryError](err); ok {
		t.Skip(missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the last release is commit %.12s", release.Commit)
	return release
}

// flags are those of the operator in deploy/, as far as they matter to a process: a lease between replicas. Configurations are
// Freehold's at once, so that nothing waits for an operator of ToolHive's. The proxyrunner stays the same: docs/upgrade.md says what
// another one replaces.
func (s *scene) flags() []string {
	return []string{
		"--leader-elect=true", "--leader-elect-resource-namespace=" + operator.Namespace, "--configs=freehold",
		"--runner-image=" + render.DefaultRunnerImage,
	}
}

// runEarlier and runPresent run a replica of an operator, until it is stopped or the test ends.
func (s *scene) runEarlier(t *testing.T) *operator.Process {
	t.Helper()
	p, _ := s.OtherOperator(t, s.earlier.Binary, s.flags()...)
	return p
}

func (s *scene) runPresent(t *testing.T) *operator.Process {
	t.Helper()
	return s.Operator(t, s.flags()...)
}

// types runs a command of the documentation in the root of the repository. LAST is the directory of the last release's files.
func (s *scene) types(t *testing.T, c documents.Command) string {
	t.Helper()
	output, err := s.shell(t.Context(), s.text(c))
	if err != nil {
		t.Fatalf("%v: %v", c, err)
	}
	return output
}

// text is a command as it is typed.
func (s *scene) text(c documents.Command) string {
	return strings.NewReplacer("NAMESPACE", s.Name, "/NAME", "/"+pair, "LAST/", s.lastRoot()+"/").Replace(c.Text)
}

func (s *scene) lastRoot() string {
	if s.earlier == nil {
		return documents.Root
	}
	return s.earlier.Root
}

func (s *scene) shell(ctx context.Context, line string) (string, error) {
	command := exec.CommandContext(ctx, "sh", "-c", line)
	command.Dir, command.Env = documents.Root, append(os.Environ(), s.kubectl.Environment()...)
	command.Env = append(command.Env, "HOME="+os.Getenv("HOME"))
	var complaint strings.Builder
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%w\n%s%s", err, output, complaint.String())
	}
	return string(output), err
}

// rest waits until one of the operators has looked at everything, and nothing is written in the namespace any more.
func (s *scene) rest(t *testing.T, replicas ...*operator.Process) {
	t.Helper()
	s.AwaitLook(t, s.leader(t, replicas))
	s.AwaitRest(t)
}

// leader returns the operator that has the lease.
func (s *scene) leader(t *testing.T, replicas []*operator.Process) (leader *operator.Process) {
	t.Helper()
	harness.Eventually(t, "one of the operators has the lease", func(ctx context.Context) error {
		for _, p := range replicas {
			leads, err := harness.Metric(ctx, p, "leader_election_master_status")
			if err != nil {
				return err
			}
			if leads == 1 {
				leader = p
				return nil
			}
		}
		return errors.New("none has it")
	})
	return leader
}

// checkOrder checks that the replicas have written one after the other, as the User-Agents tell: once the next release has begun, the one
// before writes nothing any more. In even rounds the last release comes next.
func (s *scene) checkOrder(t *testing.T, round int, since audit.Mark) {
	t.Helper()
	next, count := operator.EarlierVersion, map[bool]int{}
	if round%2 == 1 {
		next = operator.Version
	}
	for _, e := range s.Writes(t, since) {
		agent, _, _ := strings.Cut(e.UserAgent, " ") // What follows, if anything, is the field manager.
		isNext := agent == "freehold/"+next
		count[isNext]++
		if count[true] > 0 && !isNext {
			t.Errorf("round %d: %v came after a write of %s", round, e, next)
		}
	}
	t.Logf("round %d: %d writes by the one, %d by the other", round, count[false], count[true])
	if count[false] == 0 || count[true] == 0 {
		t.Errorf("round %d: one of the releases had nothing to write", round)
	}
}
