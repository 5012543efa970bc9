// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Controller-runtime is a controller that works on MCPServers with controller-runtime's client: Freehold's types go into
// its scheme, and Freehold's generated apply configurations into its Apply. Freehold itself does not use it.
//
// The program creates an MCPServer. Its reconciler gives every MCPServer of the namespace an authorization policy and a
// condition, each under a field manager of its own and without force. When it is interrupted it gives both back.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// releaseTimeout is how long it may take to give everything back after an interrupt.
const releaseTimeout = 30 * time.Second

func main() {
	// controller-runtime defines the flag kubeconfig.
	namespace := flag.String("namespace", "default", "namespace of the MCPServers")
	name := flag.String("name", "managed", "name of the MCPServer that is created")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(ctrl.SetupSignalHandler(), *namespace, *name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, namespace, name string) error {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	governor := &governor{client: manager.GetClient(), said: map[client.ObjectKey]string{}}
	if err := ctrl.NewControllerManagedBy(manager).For(&v1beta1.MCPServer{}).Complete(governor); err != nil {
		return err
	}
	// The manager's own client reads from caches, which are there only while it runs.
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	if err := create(ctx, direct, namespace, name); err != nil {
		return fmt.Errorf("creating the MCPServer: %w", err)
	}
	ended := manager.Start(ctx)
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	return errors.Join(ended, releaseAll(releasing, direct, namespace))
}
