// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// answer edits the image of proxies by hand, all at once, while the raw applier watches Deployments and answers each edit with one
// apply of the MCPServer's status. No operator that watches and reports can be faster.
func (a *rawApplier) answer(ctx context.Context, s *site, p places) (done answers, err error) {
	list, err := a.servers.ToolhiveV1beta1().MCPServers(p.watched()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return done, err
	}
	servers := map[string]*v1beta1.MCPServer{}
	for i := range list.Items {
		if server := &list.Items[i]; p.holds(server) {
			servers[server.Name] = server
		}
	}
	edits := make(chan string, len(servers))
	watching, stop := context.WithCancel(ctx)
	defer stop()
	end, err := a.watchEdits(watching, p, edits)
	if err != nil {
		return done, err
	}
	group, ctx := errgroup.WithContext(ctx)
	for range a.workers {
		group.Go(func() error {
			for {
				select {
				case <-watching.Done():
					return nil
				case name := <-edits:
					if err := a.tell(ctx, servers[name]); err != nil {
						return fmt.Errorf("MCPServer %s: %w", name, err)
					}
				}
			}
		})
	}
	group.Go(func() (err error) {
		defer end()
		defer stop()
		done, err = s.byHand(ctx, p, imageEdit(handImage))
		return err
	})
	return done, group.Wait()
}

// watchEdits sends the name of each Deployment whose spec is changed from now on.
func (a *rawApplier) watchEdits(ctx context.Context, p places, edits chan<- string) (end func(), err error) {
	core := informers.NewSharedInformerFactoryWithOptions(a.core, 0, informers.WithNamespace(p.watched()))
	handle, err := core.Apps().V1().Deployments().Informer().AddEventHandler(p.handler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, now any) {
			old, known := before.(*appsv1.Deployment)
			if d, ok := now.(*appsv1.Deployment); ok && known && d.Generation != old.Generation {
				edits <- d.Name
			}
		},
	}))
	if err != nil {
		return nil, err
	}
	core.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
		core.Shutdown()
		return nil, fmt.Errorf("the watch of Deployments did not start: %w", context.Cause(ctx))
	}
	return core.Shutdown, nil
}

// tell applies a status like the one that the operator applies for a conflict.
func (a *rawApplier) tell(ctx context.Context, server *v1beta1.MCPServer) error {
	next := *server.Status.DeepCopy()
	meta.SetStatusCondition(&next.Conditions, metav1.Condition{
		Type: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonFieldManagerConflict,
		ObservedGeneration: server.Generation,
		Message: fmt.Sprintf("%s owns the image of Deployment %s, which should have a different value. Take ownership, or leave it, "+
			"or set the same value in the MCPServer.", hand, server.Name),
	})
	_, err := a.applyStatus(ctx, server, next)
	return err
}
