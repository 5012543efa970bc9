// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

func TestPlacesHaveTheirShares(t *testing.T) {
	for name, c := range map[string]struct {
		places  places
		shares  map[string]int
		watched string
	}{
		"all in one":       {places{name: "ns", servers: 45}, map[string]int{"ns": 45}, "ns"},
		"a multiple":       {places{name: "ns", servers: 40, each: 20}, map[string]int{"ns-000": 20, "ns-001": 20}, ""},
		"a rest":           {places{name: "ns", servers: 45, each: 20}, map[string]int{"ns-000": 20, "ns-001": 20, "ns-002": 5}, ""},
		"fewer than a few": {places{name: "ns", servers: 3, each: 20}, map[string]int{"ns-000": 3}, "ns-000"},
		"one in each":      {places{name: "ns", servers: 2, each: 1}, map[string]int{"ns-000": 1, "ns-001": 1}, ""},
	} {
		servers, err := newServers(c.places, v1beta1.TransportStreamableHTTP)
		if err != nil {
			t.Fatal(err)
		}
		shares, names := map[string]int{}, map[string]bool{}
		for _, server := range servers {
			shares[server.Namespace]++
			names[server.Name] = true
			if !c.places.holds(server) {
				t.Errorf("%s: it does not hold %s", name, server.Namespace)
			}
		}
		if diff := cmp.Diff(c.shares, shares); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(names) != c.places.servers {
			t.Errorf("%s: %d MCPServers have %d names", name, c.places.servers, len(names))
		}
		namespaces := c.places.namespaces()
		for namespace := range shares {
			if !slices.Contains(namespaces, namespace) || len(namespaces) != len(shares) {
				t.Errorf("%s: the namespaces are %v", name, namespaces)
			}
		}
		if got := c.places.watched(); got != c.watched {
			t.Errorf("%s: %q is watched, want %q", name, got, c.watched)
		}
	}
}

// A watch of all namespaces shows what is not measured too, such as MCPServers of the same names that are scaled by hand.
func TestWhatIsElsewhereIsNotShown(t *testing.T) {
	spread, one := places{name: measured, servers: 45, each: 20}, places{name: measured, servers: 45}
	for namespace, in := range map[string][]places{
		"measured": {one}, "measured-000": {spread}, "measured-002": {spread}, byHand: nil, slowly: nil, "warm-up": nil, "outage": nil,
		"foreign": nil, "default": nil, "": nil,
	} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serverName(0)}}
		for _, p := range []places{spread, one} {
			shown := 0
			handler := p.handler(cache.ResourceEventHandlerFuncs{
				AddFunc: func(any) { shown++ }, UpdateFunc: func(any, any) { shown++ }, DeleteFunc: func(any) { shown++ },
			})
			handler.OnAdd(d, true)
			handler.OnUpdate(d, d)
			handler.OnDelete(d)
			handler.OnDelete(cache.DeletedFinalStateUnknown{Obj: d})
			want := 0
			if slices.Contains(in, p) {
				want = 4
			}
			if shown != want {
				t.Errorf("%+v is shown %d events of namespace %q, want %d", p, shown, namespace, want)
			}
		}
	}
}

func TestEditsByHandAreSpread(t *testing.T) {
	for _, c := range []struct {
		places            places
		edits, namespaces int
	}{
		{places{servers: 3000}, 50, 1},
		{places{servers: 3000, each: 20}, 50, 50},
		{places{servers: 100, each: 20}, 50, 5},
		{places{servers: 45, each: 20}, 45, 3},
	} {
		namespaces := map[string]bool{}
		numbers := c.places.some()
		for _, i := range numbers {
			namespaces[c.places.namespaceOf(i)] = true
		}
		if last := numbers[len(numbers)-1]; last >= c.places.servers || len(slices.Compact(numbers)) != c.edits {
			t.Errorf("%+v: the edits are of %v", c.places, numbers)
		}
		if len(namespaces) != c.namespaces {
			t.Errorf("%+v: the edits are in %d namespaces, want %d", c.places, len(namespaces), c.namespaces)
		}
	}
}

func TestOneNamespaceGetsHalfOfTheWorkers(t *testing.T) {
	for _, c := range []struct{ namespaces, all, want int }{{1, 16, 8}, {1, 7, 4}, {1, 1, 1}, {2, 16, 12}, {3, 1, 1}, {5, 16, 16}, {150, 16, 16}} {
		if got := (places{servers: c.namespaces, each: 1}).workers(c.all); got != c.want {
			t.Errorf("%d namespaces: %d of %d workers, want %d", c.namespaces, got, c.all, c.want)
		}
	}
}
