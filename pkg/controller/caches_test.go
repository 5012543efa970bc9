// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	versionedfake "github.com/freehold-dev/freehold/generated/clientset/versioned/fake"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
)

// Every event wakes once the caches of its namespace are filled, that of a deletion which was missed among them; what is no object does not. An edit, and the end of a child, is
// urgent; what is being deleted comes after that.
func TestEveryEventOfAnObjectWakesItsMCPServer(t *testing.T) {
	for _, test := range []struct {
		kind schema.GroupKind
		want []string
	}{
		{managers.MCPServer, []string{"added", "new", "edited!", "ending-", "deleted", "missed"}},
		{managers.Deployment, []string{"added", "new", "edited!", "ending-", "deleted!", "missed!"}},
	} {
		var woken []string
		caches, err := observed.NewCaches(kubefake.NewClientset(), versionedfake.NewClientset(), nil, 0, &observed.Reducer{}, nil, clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		c := &Controller{process: process{applier: apply.NewApplier(nil), caches: caches}}
		handler := c.handler(test.kind, nil, func(obj metav1.Object, to priorityqueue.Level) {
			name := obj.GetName() + [levels]string{levelEdits: "!", levelDeletions: "-"}[to]
			woken = append(woken, name)
		})
		edited := newServer("edited")
		edited.Generation++
		handler.OnAdd(newServer("early"), true)
		caches.Scope("shop").Filled.Store(true)
		handler.OnAdd(newServer("added"), true)
		handler.OnUpdate(newServer("old"), newServer("new"))
		handler.OnUpdate(newServer("edited"), edited)
		ending := newServer("ending")
		ending.Generation++
		ending.DeletionTimestamp = new(metav1.Now())
		handler.OnUpdate(newServer("ending"), ending)
		handler.OnDelete(newServer("deleted"))
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "shop/missed", Obj: newServer("missed")})
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "shop/lost"})
		handler.OnAdd("no object", false)
		if diff := cmp.Diff(test.want, woken); diff != "" {
			t.Errorf("%s: woken (-want +got):\n%s", test.kind, diff)
		}
	}
}

func TestAnUnwatchedNamespaceHoldsNothing(t *testing.T) {
	watch := func(c *Config) { c.Namespaces = []string{"market"} }
	operate(t, []runtime.Object{newServer("web")}, watch, func(t *testing.T, o *operating) {
		pods := slices.Concat(o.caches.ProxyPods("shop", "uid"), o.caches.BackendPods("shop", "uid"), o.caches.UnplacedProxyPods(key("web")))
		if o.caches.Server(key("web")) != nil || o.caches.Child(webDeployment) != nil || pods != nil || o.caches.Version(webDeployment) != "" {
			t.Error("something of it is cached")
		}
		o.expect(nil, "an MCPServer in another namespace")
	})
}
