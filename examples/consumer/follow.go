// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/generated/informers/externalversions"
)

// follow writes a line whenever the MCPServer's state is another one, until the context ends or the MCPServer is gone.
func follow(ctx context.Context, client versioned.Interface, namespace, name string, out io.Writer) error {
	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0,
		externalversions.WithNamespace(namespace),
		externalversions.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}))
	servers := factory.Toolhive().V1beta1().MCPServers()

	// The handlers only say that there is something to look at; one look answers any number of changes.
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	_, err := servers.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify() },
		UpdateFunc: func(any, any) { notify() },
		DeleteFunc: func(any) { notify() },
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	factory.Start(ctx.Done())
	// Not before every goroutine has ended, and they end only after the cancellation.
	defer factory.Shutdown()
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), servers.Informer().HasSynced) {
		return nil // Interrupted before anything was seen.
	}

	lister := servers.Lister().MCPServers(namespace)
	for last := ""; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		server, err := lister.Get(name)
		if err != nil {
			return errors.Join(errors.New("the MCPServer is gone"), err)
		}
		if state := describe(server); state != last {
			fmt.Fprintln(out, state)
			last = state
		}
	}
}

// describe returns the state of an MCPServer in one line. A status from before the last change of the spec says nothing about it.
func describe(server *v1beta1.MCPServer) string {
	if server.Status.ObservedGeneration != server.Generation {
		return fmt.Sprintf("pending at generation %d", server.Generation)
	}
	if meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionReady) {
		return fmt.Sprintf("ready at generation %d: %s", server.Generation, server.Status.URL)
	}
	return fmt.Sprintf("%s at generation %d: %s", server.Status.Phase, server.Generation, server.Status.Message)
}
