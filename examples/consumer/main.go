// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Consumer is a program outside of Freehold that works on an MCPServer with Freehold's generated clients.
//
// It plays three parts, each under a field manager of its own: one creates the MCPServer as its author, one owns its
// authorization policy, and one keeps a condition in its status. It follows the MCPServer until it is interrupted. Then
// it gives back the policy and the condition; the MCPServer stays, and its author's fields with it.
//
// Nothing is forced. Where another field manager owns a field with another value, the program says so and ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/freehold-dev/freehold/generated/clientset/versioned"
)

// releaseTimeout is how long it may take to give everything back after an interrupt.
const releaseTimeout = 30 * time.Second

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of the cluster; empty for that of the pod")
	namespace := flag.String("namespace", "default", "namespace of the MCPServer")
	name := flag.String("name", "consumed", "name of the MCPServer")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *kubeconfig, *namespace, *name)
	stop()
	if err != nil {
		if apierrors.IsConflict(err) {
			fmt.Fprintln(os.Stderr, "somebody else has a say in this:", err)
		} else {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, namespace, name string) (err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	parts := &parts{servers: client.ToolhiveV1beta1().MCPServers(namespace), namespace: namespace, name: name}

	created, err := parts.create(ctx)
	if err != nil {
		return fmt.Errorf("creating the MCPServer: %w", err)
	}
	fmt.Println("created", created.Name)
	// From here on there may be something to give back, even if what comes next fails half-way.
	defer func() {
		releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		if failed := parts.release(releasing, created.UID); failed != nil {
			err = errors.Join(err, fmt.Errorf("giving back: %w", failed))
			return
		}
		fmt.Println("released", created.Name)
	}()
	governed, err := parts.govern(ctx, created.UID)
	if err != nil {
		return fmt.Errorf("applying the policy: %w", err)
	}
	fmt.Printf("governed %s at generation %d\n", governed.Name, governed.Generation)
	if err := parts.attest(ctx, created.UID, "Attested", "the policy was applied"); err != nil {
		return fmt.Errorf("applying the condition: %w", err)
	}
	fmt.Println("attested", created.Name)
	return follow(ctx, client, namespace, name, os.Stdout)
}
