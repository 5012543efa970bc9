// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/binaries"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/hack/node/internal/splice"
	"github.com/freehold-dev/freehold/hack/source"
)

const (
	// startTimeout is how long a node may take from the start of its first process until it is Ready, with its images
	// imported. It takes a few seconds; the rest is for machines that do a lot besides.
	startTimeout = 3 * time.Minute
	// wipeTimeout is how long the node of a killed process may take to be gone.
	wipeTimeout = 10 * time.Second
	// directory of the node's files, below that of the cluster.
	directory = "node"
	// logs is the directory of the logs, below that. They outlive the node, until the next one starts.
	logs = "log"
	// archiveDir holds the archives of images until they are imported.
	archiveDir = "images"
	// importedFile is there as soon as the images are.
	importedFile = "imported"
	// readyFile has the ID of the process that runs the node, as soon as that is ready.
	readyFile = "ready"
)

// Node is a running node. Its methods may be called from several goroutines.
type Node struct {
	cluster *cluster.Cluster
	layout  layout
	cgroup  string
	process *process
	// apiServer passes the node's requests on to the API server.
	apiServer net.Listener
	began     time.Time

	stopOnce sync.Once
	stopErr  error
}

// programs are the paths of the programs that package binaries provides.
type programs struct {
	kubelet, kubeProxy, coredns, nodeinit string
}

// Start lets a node join a cluster that was started with the option RealNodes, and returns when the node is Ready,
// holds its images and resolves names. When ctx ends before that, or something fails, nothing is left running.
// Afterwards ctx has no influence; the node runs until Stop. The error is ErrUnavailable if this machine can run none.
//
// Everything of an earlier node of the cluster is gone: images, containers, and the files that they wrote.
func Start(ctx context.Context, c *cluster.Cluster, o Options) (_ *Node, err error) {
	o = o.withDefaults()
	if err := Check(); err != nil {
		return nil, err
	}
	if !c.TakesRealNodes() {
		return nil, errors.New("the cluster was not started for real nodes")
	}
	n := &Node{cluster: c, layout: layout{dir: filepath.Join(c.Dir(), directory)}}
	if err := n.layout.wipe(); err != nil {
		return nil, fmt.Errorf("removing the files of an earlier node: %w", err)
	}
	found, archives, err := n.prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("the node was not ready after %v", startTimeout))
	defer cancel()
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Stop())
		}
	}()
	if n.cgroup, err = makeCgroup(); err != nil {
		return nil, err
	}
	if err := n.layout.write(c, n.cgroup); err != nil {
		return nil, err
	}
	if err := n.boot(found); err != nil {
		return nil, err
	}
	if err := n.Import(ctx, archives...); err != nil {
		return nil, err
	}
	if err := os.WriteFile(n.layout.file(importedFile), nil, 0o600); err != nil {
		return nil, fmt.Errorf("letting the kubelet start: %w", err)
	}
	if err := os.RemoveAll(n.layout.file(archiveDir)); err != nil {
		return nil, fmt.Errorf("removing the archives: %w", err)
	}
	if err := n.grantDNS(ctx); err != nil {
		return nil, err
	}
	if err := n.waitReady(ctx); err != nil {
		return nil, err
	}
	return n, os.WriteFile(n.layout.file(readyFile), []byte(strconv.Itoa(os.Getpid())), 0o600)
}

// IsReady reports whether the process runs a node that is ready for the cluster in the directory.
func IsReady(clusterDir string, pid int) bool {
	content, err := os.ReadFile(filepath.Join(clusterDir, directory, readyFile))
	return err == nil && string(content) == strconv.Itoa(pid)
}

// prepare builds the programs that the node needs.
func (n *Node) prepare(ctx context.Context, o Options) (found programs, archives []string, err error) {
	if err := os.MkdirAll(n.layout.file(archiveDir), 0o700); err != nil {
		return found, nil, fmt.Errorf("making the directory of the node: %w", err)
	}
	tools, err := binaries.Finder{Progress: o.Progress}.Ensure(ctx, binaries.Kubelet, binaries.KubeProxy, binaries.CoreDNS)
	if err != nil {
		return found, nil, err
	}
	found = programs{
		kubelet: tools[binaries.Kubelet], kubeProxy: tools[binaries.KubeProxy], coredns: tools[binaries.CoreDNS],
		nodeinit: n.layout.file("nodeinit"),
	}
	if err := source.BuildStatic(ctx, "hack", "./node/internal/nodeinit", found.nodeinit); err != nil {
		return found, nil, err
	}
	archives, err = images.Write(ctx, n.layout.file(archiveDir), o.Progress, append([]string{images.Pause}, o.Images...)...)
	return found, archives, err
}

// boot starts the first process, and lets it talk to the API server.
func (n *Node) boot(found programs) error {
	address, _ := n.cluster.APIServerAddress()
	listener, err := net.Listen("unix", n.layout.apiServerSocket()) //nolint:noctx // it lasts as long as the node
	if err != nil {
		return fmt.Errorf("listening for the node: %w", err)
	}
	n.apiServer = listener
	go splice.Serve(listener, "tcp", address)

	// A killed node has left it.
	if err := os.Remove(n.cluster.NodeSocket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing a socket: %w", err)
	}
	content, err := json.MarshalIndent(n.layout.plan(n.cluster, found), "", "  ")
	if err != nil {
		return err
	}
	plan := n.layout.file("plan.json")
	if err := os.WriteFile(plan, content, 0o600); err != nil {
		return fmt.Errorf("writing the plan of the node: %w", err)
	}
	n.began = time.Now()
	if n.process, err = spawn(found.nodeinit, plan, n.layout.log("nodeinit")); err != nil {
		return err
	}
	// Only for people: a user who looks for the node finds its namespaces by this.
	return os.WriteFile(n.layout.file("pid"), []byte(strconv.Itoa(n.process.cmd.Process.Pid)+"\n"), 0o600)
}

// Import imports archives of images, as docker save writes them, into the node's containerd.
func (n *Node) Import(ctx context.Context, archives ...string) error {
	if err := n.poll(ctx, "containerd to listen", func(context.Context) error {
		connection, err := net.Dial("unix", n.layout.containerdSocket()) //nolint:noctx // it answers or refuses at once
		if err == nil {
			err = connection.Close()
		}
		return err
	}); err != nil {
		return err
	}
	for _, archive := range archives {
		// The kubelet looks for images in this namespace of containerd.
		importing := exec.CommandContext(ctx, find(programDirs, "ctr"),
			"--address", n.layout.containerdSocket(), "--namespace", "k8s.io", "images", "import", archive)
		if output, err := importing.CombinedOutput(); err != nil {
			return fmt.Errorf("importing %s: %w\n%s", archive, errors.Join(err, context.Cause(ctx)), output)
		}
	}
	return nil
}

// Stop ends everything on the node at once, and removes its control groups. The pods and the Node object stay in the
// API server, as they do when a machine breaks. Later calls return the result of the first.
func (n *Node) Stop() error {
	n.stopOnce.Do(func() {
		var errs []error
		if n.process != nil {
			errs = append(errs, n.process.stop())
		}
		if n.apiServer != nil {
			errs = append(errs, n.apiServer.Close())
		}
		if n.cgroup != "" {
			errs = append(errs, removeCgroup(n.cgroup))
		}
		n.stopErr = errors.Join(append(errs, n.layout.wipe(logs))...)
	})
	return n.stopErr
}

// Done is closed when the node has ended, because of Stop or because one of its programs has ended. Err says why.
func (n *Node) Done() <-chan struct{} { return n.process.done }

// Err says why the node has ended. It is for after Done.
func (n *Node) Err() error {
	<-n.process.done
	return n.process.err
}

// PID returns the process ID of the first process of the node, by which its namespaces are found.
func (n *Node) PID() int { return n.process.cmd.Process.Pid }

// LogDir returns the directory with the logs of the node's programs and of its pods.
func (n *Node) LogDir() string { return n.layout.file(logs) }

// wipe removes the files of a node, except for those named.
func (l layout) wipe(but ...string) error {
	// What was mounted there is busy for a moment after its node has been killed.
	return repeat(wipeTimeout, func() error {
		entries, err := os.ReadDir(l.dir)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		errs := []error{err}
		for _, entry := range entries {
			if !slices.Contains(but, entry.Name()) {
				errs = append(errs, os.RemoveAll(l.file(entry.Name())))
			}
		}
		return errors.Join(errs...)
	})
}
