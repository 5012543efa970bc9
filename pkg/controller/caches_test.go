// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// Every event wakes, that of a deletion which was missed among them; what is no object does not.
func TestHandlerWakes(t *testing.T) {
	var woken []string
	handler := (&Controller{applier: apply.NewApplier(nil), caches: &caches{}}).handler(managers.MCPServer, nil, func(obj metav1.Object) { woken = append(woken, obj.GetName()) })
	handler.OnAdd(newServer("added"), true)
	handler.OnUpdate(newServer("old"), newServer("new"))
	handler.OnDelete(newServer("deleted"))
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "shop/missed", Obj: newServer("missed")})
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "shop/lost"})
	handler.OnAdd("no object", false)
	if diff := cmp.Diff([]string{"added", "new", "deleted", "missed"}, woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
}

// A namespace that is not watched holds nothing, as far as the controller knows.
func TestUnwatchedNamespace(t *testing.T) {
	watch := func(c *Config) { c.Namespaces = []string{"market"} }
	operate(t, []runtime.Object{newServer("web")}, watch, func(t *testing.T, o *operating) {
		pods := slices.Concat(o.caches.proxyPods("shop", "uid"), o.caches.backendPods("shop", "uid"), o.caches.unplacedProxyPods(key("web")))
		if o.caches.server(key("web")) != nil || o.caches.child(webDeployment) != nil || pods != nil || o.caches.version(webDeployment) != "" {
			t.Error("something of it is cached")
		}
		o.expect(nil, "an MCPServer in another namespace")
	})
}
