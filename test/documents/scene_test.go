// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// web is the MCPServer that the documents call NAME.
const web = "web"

// reader is somebody who follows a document, in a namespace.
type reader struct {
	*harness.Namespace
	kubectl *harness.Kubectl
}

func newReader(t *testing.T) *reader {
	t.Helper()
	return newReaderOf(t, env)
}

// newReaderOf is newReader in a cluster that a test has for itself.
func newReaderOf(t *testing.T, cluster *harness.Env) *reader {
	t.Helper()
	r := &reader{Namespace: cluster.Namespace(t)}
	r.kubectl = r.Kubectl(t)
	return r
}

// installOperator gives the operator pods, which are fake: a process stands in for them.
func (r *reader) installOperator(t *testing.T) {
	t.Helper()
	r.removeOperator(t)
	r.kubectl.Run(t, "apply", "--server-side", "-f", filepath.Join(Root, "deploy", "install.yaml"))
}

// removeOperator takes away, at the end of the test, what of deploy/install.yaml the control plane of the suites does
// without.
func (r *reader) removeOperator(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		_, err := r.kubectl.Try(context.WithoutCancel(t.Context()), harness.Call{Args: []string{
			"delete", "deployment,poddisruptionbudget,networkpolicy,service", "--all", "-n", "freehold-system", "--wait=false",
		}})
		if err != nil {
			t.Error(err)
		}
	})
}

// environment is that of the reader's shell: what Go needs is that of this process.
func (r *reader) environment() []string {
	environment := os.Environ()
	for _, variable := range r.kubectl.Environment() {
		if !strings.HasPrefix(variable, "HOME=") && !strings.HasPrefix(variable, "TMPDIR=") {
			environment = append(environment, variable)
		}
	}
	return environment
}

// filledIn is a command with names for what the document leaves to the reader.
func (r *reader) filledIn(c Command) string {
	return strings.NewReplacer("NAMESPACE", r.Name, "NAME", web, "--namespace default", "--namespace "+r.Name).Replace(c.Text)
}

// types runs a command in the root of the repository. It must succeed.
func (r *reader) types(t *testing.T, c Command) (output string) {
	t.Helper()
	output, err := r.attempt(t, r.filledIn(c))
	if err != nil {
		t.Errorf("%v: %v", c, err)
	}
	return output
}

func (r *reader) attempt(t *testing.T, line string) (output string, err error) {
	t.Helper()
	ctx, cancel := harness.WithinPace(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-c", line)
	command.Dir, command.Env = Root, r.environment()
	command.WaitDelay = lastWords
	var complaint bytes.Buffer
	command.Stderr = &complaint
	text, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%w\n%s%s", err, text, complaint.String())
	}
	return string(text), err
}

// await waits until a condition of the MCPServer has a status.
func (r *reader) await(t *testing.T, condition string, status metav1.ConditionStatus) {
	t.Helper()
	r.AwaitServer(t, web, fmt.Sprintf("has %s %s", condition, status), func(server *v1beta1.MCPServer) error {
		if !meta.IsStatusConditionPresentAndEqual(server.Status.Conditions, condition, status) {
			return fmt.Errorf("conditions are %v", server.Status.Conditions)
		}
		return nil
	})
}

// patience is how long a command line may take. A program may have to be compiled first.
const patience = 10 * time.Minute

// lastWords is how long the output of a shell that has ended may take to be read on a busy machine. What a killed one has called may hold
// on to it for longer.
const lastWords = 10 * time.Second

// start runs a command line in the root of the repository, in an environment, until it is interrupted or the test ends.
func start(t *testing.T, line string, environment []string) *harness.Program {
	t.Helper()
	command := exec.Command("sh", "-c", line) //nolint:noctx // It ends by a signal.
	command.Dir, command.Env = Root, environment
	return harness.StartProgram(t, command)
}

// interrupt is Ctrl-C. How the program ends is its own affair.
func interrupt(t *testing.T, p *harness.Program) {
	t.Helper()
	_ = p.Interrupt(t, syscall.SIGINT)
}
