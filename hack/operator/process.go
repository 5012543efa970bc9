// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/freehold-dev/freehold/hack/freeport"
	"github.com/freehold-dev/freehold/hack/internal/child"
)

// stopGrace is how long an operator may take to come to rest before it is killed.
const stopGrace = 30 * time.Second

// Options say how an operator is run.
type Options struct {
	// Binary is the operator's executable, see Build.
	Binary string
	// Kubeconfig with the rights of the operator's ServiceAccount.
	Kubeconfig string
	// Log takes the operator's output.
	Log io.Writer
	// Args are more flags; they win over those that Start sets.
	Args []string
	// Env are more environment variables, as KEY=value.
	Env []string
}

// Process is a running operator.
type Process struct {
	cmd     *exec.Cmd
	health  string
	metrics string
	started time.Time
	done    chan struct{}
	err     error
	once    sync.Once
}

// Start starts an operator and returns when it says that it is alive. It works alone, without a lease, unless
// the options ask for leader election.
func Start(ctx context.Context, o Options) (*Process, error) {
	addresses, err := freeport.Addresses(ctx, 2)
	if err != nil {
		return nil, err
	}
	health, metrics := addresses[0], addresses[1]
	args := append([]string{
		"--kubeconfig=" + o.Kubeconfig, "--leader-elect=false", "--openshift=false",
		"--health-probe-bind-address=" + health, "--metrics-bind-address=" + metrics,
	}, o.Args...)
	cmd := exec.Command(o.Binary, args...) //nolint:noctx // it runs until Stop, also when the context of the start ends
	p := &Process{cmd: cmd, health: health, metrics: metrics, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = o.Log, o.Log
	p.cmd.Env = append(os.Environ(), o.Env...)
	p.started = time.Now()
	if err := child.Start(p.cmd); err != nil {
		return nil, fmt.Errorf("cannot start the operator: %w", err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	if err := p.waitAlive(ctx); err != nil {
		_ = p.Kill()
		return nil, err
	}
	return p, nil
}

func (p *Process) waitAlive(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, time.Minute, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.done:
			return false, fmt.Errorf("the operator ended: %w; see its log", errors.Join(p.err, errors.New("it was to keep running")))
		default:
		}
		_, err := get(ctx, "http://"+p.health+"/livez")
		return err == nil, nil
	})
}

// Done is closed when the operator has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// PID returns the operator's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Started returns the time right before the process was started.
func (p *Process) Started() time.Time { return p.started }

// Stop asks the operator to end, and returns how it did.
func (p *Process) Stop() error {
	p.once.Do(func() { _ = p.cmd.Process.Signal(syscall.SIGTERM) })
	select {
	case <-p.done:
		return p.err
	case <-time.After(stopGrace):
		return errors.Join(fmt.Errorf("the operator did not end within %v", stopGrace), p.Kill())
	}
}

// Kill ends the operator at once, as a crash would.
func (p *Process) Kill() error {
	err := p.cmd.Process.Kill()
	<-p.done
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Pause freezes the operator, as a starved node would, and returns when it has stopped; Resume lets it go on.
func (p *Process) Pause() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return child.AwaitFrozen(p.cmd.Process.Pid)
}

// Resume lets a paused operator go on.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// MetricsAddress returns where the operator serves its metrics, as host:port.
func (p *Process) MetricsAddress() string { return p.metrics }

// Metrics returns the operator's metrics in the text format. It is for those that are not secure.
func (p *Process) Metrics(ctx context.Context) (string, error) {
	return get(ctx, "http://"+p.metrics+"/metrics")
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %s", url, response.Status)
	}
	return string(text), err
}

// TempLog returns a file for an operator's output in the directory.
func TempLog(dir string) (*os.File, error) {
	return os.Create(filepath.Join(dir, "freehold.log"))
}
