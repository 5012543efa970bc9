// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package toolhive

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/binaries"
	"github.com/freehold-dev/freehold/hack/freeport"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/hack/internal/child"
)

const (
	// aliveTimeout is how long the operator may take until it says that it is alive.
	aliveTimeout = time.Minute
	// stopGrace is how long it may take to come to rest. Its own limit, that of controller-runtime, is 30 s.
	stopGrace = 40 * time.Second
)

// Options say how ToolHive's operator is run.
type Options struct {
	// Dir takes its log and its credentials. It must exist.
	Dir string
	// Namespaces are those that it watches. Default: all.
	Namespaces []string
	// RunnerImage is the image of the proxies. Default: images.ProxyRunner.
	RunnerImage string
	// Env are more environment variables, as KEY=value; they win over those that Start sets.
	Env []string
}

// Operator is a running ToolHive operator.
type Operator struct {
	cmd     *exec.Cmd
	log     string
	started time.Time
	done    chan struct{}
	// err is how it ended, once done is closed.
	err error
}

// Start installs ToolHive, see Install, and starts its operator with the rights of its ServiceAccount. It returns when
// the operator says that it is alive; by then it may not have read the cluster yet. It works alone, without a lease.
// The first call on a machine builds it, see package binaries.
func Start(ctx context.Context, c *cluster.Cluster, o Options) (*Operator, error) {
	found, err := binaries.Finder{}.Ensure(ctx, binaries.ToolHiveOperator)
	if err != nil {
		return nil, err
	}
	if err := Install(ctx, c.RESTConfig()); err != nil {
		return nil, fmt.Errorf("cannot install ToolHive: %w", err)
	}
	kubeconfig, err := c.ServiceAccountKubeconfig(ctx, Namespace, ServiceAccount)
	if err != nil {
		return nil, err
	}
	addresses, err := freeport.Addresses(ctx, 1)
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp(o.Dir, "thv-operator-*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close() // The process has its own.

	// "0" turns the metrics off.
	cmd := exec.Command(found[binaries.ToolHiveOperator], //nolint:noctx // it runs until Stop, also when the context of the start ends
		"--kubeconfig="+kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address="+addresses[0])
	cmd.Env = append(environment(o), o.Env...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = o.Dir, log, log
	p := &Operator{cmd: cmd, log: log.Name(), started: time.Now(), done: make(chan struct{})}
	if err := child.Start(cmd); err != nil {
		return nil, fmt.Errorf("cannot start ToolHive's operator: %w", err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := p.waitAlive(ctx, "http://"+addresses[0]+"/healthz"); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// environment returns what the chart sets, as far as it matters here. The variables of this machine are kept from it:
// some switch things off in ToolHive, a CI's for example.
func environment(o Options) []string {
	runner := o.RunnerImage
	if runner == "" {
		runner = images.ProxyRunner
	}
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + o.Dir,
		"POD_NAMESPACE=" + Namespace,
		"TOOLHIVE_RUNNER_IMAGE=" + runner,
		"VMCP_IMAGE=" + images.VirtualMCP,
		"TOOLHIVE_PROXY_HOST=0.0.0.0",
		"TOOLHIVE_USE_CONFIGMAP=true",
		"UNSTRUCTURED_LOGS=false",
		// The platform would be found out by asking the API server.
		"OPERATOR_OPENSHIFT=false",
		// Nothing is to be asked of anybody on the network.
		"TOOLHIVE_SKIP_UPDATE_CHECK=true",
		// The migrator writes MCPServers. The chart has it on, as it needs rights for all namespaces.
		fmt.Sprintf("TOOLHIVE_ENABLE_STORAGE_VERSION_MIGRATOR=%t", len(o.Namespaces) == 0),
	}
	if len(o.Namespaces) > 0 {
		env = append(env, "WATCH_NAMESPACE="+strings.Join(o.Namespaces, ","))
	}
	return env
}

func (p *Operator) waitAlive(ctx context.Context, url string) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, aliveTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.done:
			return false, fmt.Errorf("it ended: %w", p.ending())
		default:
		}
		last = answers(ctx, url)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("ToolHive's operator did not come up, see %s: %w", p.log, errors.Join(err, last))
	}
	return nil
}

func answers(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}

// Log returns the path of the operator's log.
func (p *Operator) Log() string { return p.log }

// Name returns the operator's program, which is its field manager's name too.
func (p *Operator) Name() string { return filepath.Base(p.cmd.Path) }

// PID returns the operator's process id.
func (p *Operator) PID() int { return p.cmd.Process.Pid }

// Started returns the time right before the process was started.
func (p *Operator) Started() time.Time { return p.started }

// Done is closed when the operator has ended.
func (p *Operator) Done() <-chan struct{} { return p.done }

// Stop asks the operator to end, and returns how it did. It is an error if it has ended by itself before.
func (p *Operator) Stop() error {
	select {
	case <-p.done:
		return fmt.Errorf("ToolHive's operator had ended by itself, see %s: %w", p.log, p.ending())
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(stopGrace):
		p.Kill()
		return fmt.Errorf("ToolHive's operator did not end within %v, see %s", stopGrace, p.log)
	}
}

// Kill ends the operator at once, as a crash would. It returns when it is gone.
func (p *Operator) Kill() {
	_ = p.cmd.Process.Kill() // It fails for one that has ended.
	<-p.done
}

// ending returns how an operator ended that should not have.
func (p *Operator) ending() error {
	if p.err != nil {
		return p.err
	}
	return errors.New("without an error")
}
