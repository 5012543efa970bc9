// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command run is make run: it starts a local control plane, or uses the one that KUBECONFIG names, installs
// Freehold, runs the operator with the rights of its own ServiceAccount, creates the sample MCPServers and shows their
// progress until Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/hack/operator"
)

const (
	// samplesNamespace takes the samples; it is made for them, and deleted from an existing cluster at the end.
	samplesNamespace = "freehold-samples"
	// readyTimeout is how long the samples may take; on the local cluster it is about a second.
	readyTimeout = 5 * time.Minute
	// cleanUpTimeout bounds the clean-up after Ctrl-C on an existing cluster.
	cleanUpTimeout = 30 * time.Second
)

func main() {
	kind := flag.String("node", "fake", "what pods run on: fake, or real for containers (Linux and root only)")
	once := flag.Bool("once", false, "end as soon as everything is ready, instead of waiting for Ctrl-C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := fmt.Errorf("-node=%s: want fake or real", *kind)
	if *kind == "fake" || *kind == "real" {
		err = run(ctx, os.Stdout, *kind == "real", *once)
	}
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, containers, once bool) (err error) {
	steps := stepper{out: out, start: time.Now()}
	if containers {
		if err := canRunContainers(); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "freehold-run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	existing := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if existing == "" {
		steps.say("Starting a control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, %s", nodes(containers))
	}
	c, err := cluster.StartOrUse(ctx, cluster.Options{Progress: out, RealNodes: containers, Published: true})
	if err != nil && existing != "" {
		return fmt.Errorf("KUBECONFIG is %s: %w; unset it to start a control plane here", existing, err)
	}
	if err != nil {
		return err
	}
	defer func() {
		fmt.Fprintln(out, "Stopping.")
		err = errors.Join(err, c.Stop())
	}()
	args := []string{"-v=2"}
	if !c.Owned() {
		steps.say("Using the cluster that KUBECONFIG names: %s", c.RESTConfig().Host)
		core, err := kubernetes.NewForConfig(c.RESTConfig())
		if err != nil {
			return err
		}
		if err := refuseBesideFreehold(ctx, core); err != nil {
			return err
		}
		// The MCPServers of others stay as they are: their operator is to go on, and this one ends with Ctrl-C.
		args = append(args, "--watch-namespaces="+samplesNamespace)
	}
	if containers {
		steps.say("Starting a node: containerd, kubelet, kube-proxy, CoreDNS, and images for ToolHive's proxyrunner and a server")
		n, err := startNode(ctx, c, out)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, n.Stop()) }()
		args = append(args, "--runner-image="+images.ProxyRunner)
	}

	steps.say("Building the operator and kubectl freehold")
	binary, plugin := filepath.Join(dir, "freehold"), filepath.Join(dir, "kubectl-freehold")
	if err := errors.Join(operator.Build(ctx, binary), operator.BuildPlugin(ctx, plugin)); err != nil {
		return err
	}
	onPath, err := findKubectl(ctx, c, plugin)
	if err != nil {
		return err
	}

	steps.say("Installing the MCPServer definition and the operator's rights")
	if err := operator.Install(ctx, c.RESTConfig(), out); err != nil {
		return err
	}
	if c.Owned() {
		if err := operator.Record(ctx, c.RESTConfig(), args...); err != nil {
			return err
		}
	}
	kubeconfig, err := c.ServiceAccountKubeconfig(ctx, operator.Namespace, operator.ServiceAccount)
	if err != nil {
		return err
	}
	log, err := operator.TempLog(dir)
	if err != nil {
		return err
	}
	defer log.Close()
	steps.say("Starting the operator as ServiceAccount %s/%s; its log: %s", operator.Namespace, operator.ServiceAccount, log.Name())
	process, err := operator.Start(ctx, operator.Options{Binary: binary, Kubeconfig: kubeconfig, Log: log, Args: args})
	if err != nil {
		return errors.Join(err, showTail(out, log.Name()))
	}
	defer func() { err = errors.Join(err, process.Stop()) }()

	if !c.Owned() {
		defer func() { err = errors.Join(err, removeSamples(c)) }()
	}
	samples, err := applySamples(ctx, c)
	if err != nil {
		return err
	}
	steps.say("Applied %d samples to namespace %s", len(samples), samplesNamespace)
	invite(out, c.Kubeconfig(), onPath)

	v, err := newView(c.RESTConfig(), samplesNamespace)
	if err != nil {
		return err
	}
	watching, cancel := context.WithTimeoutCause(ctx, readyTimeout,
		fmt.Errorf("the samples were not ready within %v; the operator's log is %s", readyTimeout, log.Name()))
	defer cancel()
	if err := v.follow(watching, out, process.Done()); err != nil {
		return errors.Join(err, showTail(out, log.Name()))
	}
	steps.say("Everything is ready")
	fmt.Fprintln(out)
	if err := v.table(ctx, out); err != nil {
		return err
	}
	if once {
		return nil
	}
	fmt.Fprintln(out, "\nThe operator goes on working. Change or delete something and see what becomes of it; Ctrl-C stops everything.")
	select {
	case <-ctx.Done():
		fmt.Fprintln(out)
		return nil
	case <-process.Done():
		return errors.Join(errors.New("the operator has ended"), showTail(out, log.Name()))
	}
}

// stepper prints what is being done, and when.
type stepper struct {
	out   io.Writer
	start time.Time
}

func (s stepper) say(format string, args ...any) {
	fmt.Fprintf(s.out, "%6.1fs  %s\n", time.Since(s.start).Seconds(), fmt.Sprintf(format, args...))
}

func applySamples(ctx context.Context, c *cluster.Cluster) ([]*unstructured.Unstructured, error) {
	core, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, err
	}
	namespace := corev1ac.Namespace(samplesNamespace)
	if _, err := core.CoreV1().Namespaces().Apply(ctx, namespace, metav1.ApplyOptions{FieldManager: "freehold-run"}); err != nil {
		return nil, fmt.Errorf("cannot make namespace %s: %w", samplesNamespace, err)
	}
	samples, err := operator.Samples()
	if err != nil {
		return nil, err
	}
	return samples, operator.Apply(ctx, c.RESTConfig(), samplesNamespace, samples)
}
