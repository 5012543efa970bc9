// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// web is the MCPServer that the documents call NAME.
const web = "web"

// reader is somebody who follows a document, in a namespace.
type reader struct {
	*harness.Space
	kubectl *harness.Kubectl
}

func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{Space: env.Space(t)}
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
	command := exec.CommandContext(t.Context(), "sh", "-c", line)
	command.Dir, command.Env = Root, r.environment()
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

// program is a command that goes on until it is interrupted.
type program struct {
	command *exec.Cmd
	ended   chan struct{}
	err     error

	mu   sync.Mutex
	text bytes.Buffer
}

// Write takes the program's output.
func (p *program) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(text)
}

func (p *program) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// start runs a command line in the root of the repository, in an environment, with processes of its own group, until it
// is interrupted or the test ends.
func start(t *testing.T, line string, environment []string) *program {
	t.Helper()
	p := &program{command: exec.Command("sh", "-c", line), ended: make(chan struct{})} //nolint:noctx // It ends by a signal.
	p.command.Dir, p.command.Env, p.command.Stdout, p.command.Stderr = Root, environment, p, p
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) // Most have ended already.
		<-p.ended
		if t.Failed() {
			t.Logf("%s has said:\n%s", line, p.said())
		}
	})
	return p
}

// patience is how long a program may take, which may have to be compiled first.
const patience = 10 * time.Minute

// await waits until the program has said something.
func (p *program) await(t *testing.T, text string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), harness.Poll, patience, true, func(context.Context) (bool, error) {
		if strings.Contains(p.said(), text) {
			return true, nil
		}
		select {
		case <-p.ended:
			return false, errors.Join(errors.New("it has ended"), p.err)
		default:
			return false, nil
		}
	})
	if err != nil {
		t.Fatalf("it does not say %q: %v", text, err)
	}
}

// interrupt is Ctrl-C. It waits for the end.
func (p *program) interrupt(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(-p.command.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(harness.Timeout):
		t.Fatal("it does not end")
	}
}
