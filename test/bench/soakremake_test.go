// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned/fake"
	toolhiveinformers "github.com/freehold-dev/freehold/generated/informers/externalversions"
)

// TestAllAreDeletedBeforeOneIsCreatedAgain deletes more MCPServers than are deleted at a time, of which none goes before all are being
// deleted. No name is tried before it is free.
func TestAllAreDeletedBeforeOneIsCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 2*creators + 1
		var names []string
		var servers []runtime.Object
		for i := range count {
			names = append(names, serverName(i))
			servers = append(servers, &v1beta1.MCPServer{ObjectMeta: metav1.ObjectMeta{Namespace: measured, Name: serverName(i), UID: "earlier"}})
		}
		servers = append(servers, &v1beta1.MCPServer{ObjectMeta: metav1.ObjectMeta{Namespace: measured, Name: serverName(count), UID: "earlier"}})
		client := fake.NewSimpleClientset(servers...)
		deleted, created := 0, 0
		client.PrependReactor("delete", "mcpservers", func(clienttesting.Action) (bool, runtime.Object, error) {
			if deleted++; deleted < count {
				return true, nil, nil
			}
			time.AfterFunc(time.Minute, func() {
				for _, name := range names {
					if err := client.Tracker().Delete(v1beta1.SchemeGroupVersion.WithResource("mcpservers"), measured, name); err != nil {
						t.Error(err)
					}
				}
			})
			return true, nil, nil
		})
		client.PrependReactor("create", "mcpservers", func(clienttesting.Action) (bool, runtime.Object, error) {
			if created++; deleted < count {
				t.Errorf("one is created when %d of %d are deleted", deleted, count)
			}
			return false, nil, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		factory := toolhiveinformers.NewSharedInformerFactoryWithOptions(client, 0, toolhiveinformers.WithNamespace(measured))
		c := &churn{
			site: &site{servers: client}, namespace: measured, uids: map[string]types.UID{}, generations: map[string]int64{},
			observer: &observer{servers: factory.Toolhive().V1beta1().MCPServers().Informer()},
		}
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		if err := c.remake(ctx, names); err != nil {
			t.Error(err)
		}
		if created != count || len(c.uids) != count {
			t.Errorf("%d requests for %d MCPServers, of which %d are noted", created, count, len(c.uids))
		}
		cancel()
		factory.Shutdown()
	})
}
