// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/hack/cluster/binaries"
	"github.com/freehold-dev/freehold/hack/cluster/internal/pki"
	"github.com/freehold-dev/freehold/hack/freeport"
	"github.com/freehold-dev/freehold/hack/internal/child"
)

const (
	// startTimeout is how long a cluster may take from the start of its first process until it is usable. It takes
	// a few seconds; the rest is for machines that do a lot besides.
	startTimeout = 3 * time.Minute
	// portAttempts is how often ports are chosen anew when another process took one in between.
	portAttempts = 5
	// stopGrace is the time that a process gets to end by itself. None has anything to lose: the API server keeps its
	// state in etcd, and etcd writes what it has acknowledged.
	stopGrace = 1500 * time.Millisecond
)

// ErrNotStarted is returned for a component that the cluster does not have, like all of a cluster that this package
// has not started.
var ErrNotStarted = errors.New("this cluster has no such process")

// Cluster is a running control plane. Its methods may be called from several goroutines.
type Cluster struct {
	state      *stateDir
	admin      *rest.Config
	kubeconfig string
	options    Options

	// What follows is empty for a cluster that runs without us.

	authority *pki.Authority
	programs  map[binaries.Tool]string
	ports     ports
	parent    *child.Parent
	processes map[Component]*process
	// podTerminator is nil without fake nodes.
	podTerminator *podTerminator
	failure       *failure

	stopOnce sync.Once
	stopErr  error
}

// Start starts a cluster and returns when it is usable: the API server is ready, namespace default takes pods, the
// fake nodes are Ready. When ctx ends before that, or something fails, nothing is left running. Afterwards ctx has
// no influence; the cluster runs until Stop.
//
// The first call on a machine builds programs for several minutes, see package binaries.
func Start(ctx context.Context, options Options) (_ *Cluster, err error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	programs, err := options.finder().Ensure(ctx, options.programs()...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("cluster was not usable after %s", startTimeout))
	defer cancel()

	state, err := openStateDir(ctx, options.Dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{state: state, options: options, programs: programs, parent: child.NewParent()}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	// One that was killed did not withdraw.
	if err := c.withdraw(); err != nil {
		return nil, err
	}
	if c.authority, err = prepareCredentials(state); err != nil {
		return nil, err
	}
	if err := errors.Join(writeConfig(state, options), prepareRealNodes(c, options)); err != nil {
		return nil, err
	}
	if err := c.startServers(ctx); err != nil {
		return nil, err
	}
	for _, component := range options.components()[2:] {
		if err := c.processes[component].start(); err != nil {
			return nil, err
		}
	}
	if c.processes[Kwok] != nil {
		if c.podTerminator, err = startPodTerminator(c.state.file("config", kwokUser.kubeconfig())); err != nil {
			return nil, err
		}
	}
	if err := c.waitUsable(ctx); err != nil {
		return nil, err
	}
	if err := c.announce(); err != nil {
		return nil, err
	}
	return c, nil
}

// startServers starts the processes that listen on ports, with other ports if one is taken.
func (c *Cluster) startServers(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := c.tryStartServers(ctx)
		var exit *exitError
		if err == nil || !errors.As(err, &exit) || !exit.portTaken() || attempt == portAttempts {
			return err
		}
		if err := c.stopProcesses(); err != nil {
			return err
		}
	}
}

func (c *Cluster) tryStartServers(ctx context.Context) error {
	chosen, err := freeport.Find(ctx, 2)
	if err != nil {
		return err
	}
	c.ports = ports{etcd: chosen[0], apiServer: chosen[1]}
	c.admin, c.kubeconfig, err = writeComponentKubeconfigs(c.state, c.authority, c.ports.apiServerURL())
	if err != nil {
		return err
	}
	c.defineProcesses()
	for _, component := range []Component{Etcd, APIServer} {
		if err := c.processes[component].start(); err != nil {
			return err
		}
		if err := c.waitServing(ctx, component); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) defineProcesses() {
	c.failure = newFailure()
	arguments := map[Component][]string{
		Etcd:              etcdArgs(c.state, c.ports),
		APIServer:         apiServerArgs(c.state, c.ports, c.options),
		ControllerManager: controllerManagerArgs(c.state, c.options.Controllers, c.options.ControllerManagerArgs),
		Scheduler:         schedulerArgs(c.state),
		Kwok:              kwokArgs(c.state),
	}
	c.processes = make(map[Component]*process)
	for _, component := range c.options.components() {
		c.processes[component] = &process{
			name:       component,
			path:       c.programs[c.options.program(component)],
			args:       arguments[component],
			env:        c.options.environment(),
			logPath:    c.state.file("log", string(component)+".log"),
			parent:     c.parent,
			unexpected: c.failure.set,
		}
	}
}

// Wait returns when ctx ends, with nil, or when a process has ended without being stopped, with the reason. The latter
// never happens in a cluster that this package has not started.
func (c *Cluster) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.failure.happened:
		return c.failure.cause
	}
}

// Stop ends all processes, last started first, and removes the directory unless the caller named it. It takes one
// to three seconds, and at most about five. A cluster that this package has not started goes on. Later calls return the
// result of the first.
func (c *Cluster) Stop() error {
	c.stopOnce.Do(func() {
		if c.podTerminator != nil {
			c.podTerminator.end()
		}
		c.stopErr = errors.Join(c.withdraw(), c.stopProcesses())
		if c.parent != nil {
			c.parent.Close()
		}
		c.stopErr = errors.Join(c.stopErr, c.state.close())
	})
	return c.stopErr
}

// stopProcesses ends the clients of the API server at the same time, then it, then etcd.
func (c *Cluster) stopProcesses() error {
	for _, together := range [][]Component{{Kwok, Scheduler, ControllerManager}, {APIServer}, {Etcd}} {
		results := make(chan error, len(together))
		for _, component := range together {
			go func() {
				if p := c.processes[component]; p != nil {
					results <- p.stop(c.grace(component))
					return
				}
				results <- nil
			}()
		}
		var errs []error
		for range together {
			errs = append(errs, <-results)
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// grace returns the time that a process gets to end by itself when the whole cluster ends. etcd takes a second to close
// a database that is about to be removed.
func (c *Cluster) grace(component Component) time.Duration {
	if component == Etcd && c.state.ephemeral {
		return 0
	}
	return stopGrace
}

// StopComponent ends one process, for a test of what happens without it. All others go on.
func (c *Cluster) StopComponent(component Component) error {
	p, err := c.process(component)
	if err != nil {
		return err
	}
	return p.stop(stopGrace)
}

// StartComponent starts a stopped process again, at the same address and with the same data, and returns when etcd
// or the API server answers. The other components are not waited for.
func (c *Cluster) StartComponent(ctx context.Context, component Component) error {
	p, err := c.process(component)
	if err != nil {
		return err
	}
	if err := p.start(); err != nil {
		return err
	}
	return c.waitServing(ctx, component)
}

// Pause freezes a process: its connections stay open, but it answers nothing until Resume.
func (c *Cluster) Pause(component Component) error {
	p, err := c.process(component)
	if err != nil {
		return err
	}
	return p.freeze()
}

// Resume lets a frozen process go on.
func (c *Cluster) Resume(component Component) error {
	p, err := c.process(component)
	if err != nil {
		return err
	}
	return p.signal(syscall.SIGCONT)
}

func (c *Cluster) process(component Component) (*process, error) {
	p := c.processes[component]
	if p == nil {
		return nil, fmt.Errorf("%s: %w", component, ErrNotStarted)
	}
	return p, nil
}

// PIDs returns the process IDs of the components that run.
func (c *Cluster) PIDs() map[Component]int {
	pids := make(map[Component]int)
	for component, p := range c.processes {
		if pid := p.pid(); pid != 0 {
			pids[component] = pid
		}
	}
	return pids
}

// Dir returns the directory of the cluster: logs in log/, certificates in pki/, the administrator's kubeconfig.
func (c *Cluster) Dir() string { return c.state.path }

// LogPath returns the path of a component's log.
func (c *Cluster) LogPath(component Component) string {
	return c.state.file("log", string(component)+".log")
}

// KubectlPath returns the path of kubectl, which is built if it is not found.
func (c *Cluster) KubectlPath(ctx context.Context) (string, error) {
	found, err := c.options.finder().Ensure(ctx, binaries.Kubectl)
	return found[binaries.Kubectl], err
}
