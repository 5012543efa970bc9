// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func TestScopesOverlap(t *testing.T) {
	for _, test := range []struct {
		a, b Scope
		want bool
	}{
		{Scope{}, Scope{}, true},
		{Scope{}, Scope{Selector: "shard=a"}, true},
		{Scope{Selector: "shard=a"}, Scope{Selector: "shard=a"}, true},
		{Scope{Selector: "shard=a"}, Scope{Selector: "shard=b"}, false},
		{Scope{Selector: "shard notin (a)"}, Scope{Selector: "shard=a"}, false},
		{Scope{Selector: "shard notin (a)"}, Scope{Selector: "shard in (a,b)"}, true},
		{Scope{Selector: "shard notin (a,b)"}, Scope{Selector: "shard in (a,b)"}, false},
		{Scope{Selector: "shard notin (a)"}, Scope{Selector: "shard notin (b)"}, true},
		{Scope{Selector: "shard"}, Scope{Selector: "!shard"}, false},
		{Scope{Selector: "!shard"}, Scope{Selector: "shard!=a"}, true},
		{Scope{Selector: "shard"}, Scope{Selector: "shard!=a"}, true},
		{Scope{Selector: "shard=a"}, Scope{Selector: "team=b"}, true},
		{Scope{Selector: "shard=a,team=b"}, Scope{Selector: "team=c"}, false},
		{Scope{Selector: "tier>3"}, Scope{Selector: "tier<4"}, false},
		{Scope{Selector: "tier>3"}, Scope{Selector: "tier<5"}, true},
		{Scope{Selector: "tier>3,tier!=4"}, Scope{Selector: "tier<6"}, true},
		{Scope{Namespaces: []string{"a"}}, Scope{Namespaces: []string{"b"}}, false},
		{Scope{Namespaces: []string{"a"}}, Scope{}, true},
		{Scope{Namespaces: []string{"a"}, Selector: "shard=a"}, Scope{Namespaces: []string{"b", "a"}, Selector: "shard=b"}, false},
	} {
		for _, got := range []bool{test.a.Overlaps(test.b), test.b.Overlaps(test.a)} {
			if got != test.want {
				t.Errorf("%+v and %+v have an MCPServer in common: %v, want %v", test.a, test.b, got, test.want)
			}
		}
	}
}

// Scopes with an MCPServer in common overlap, and each has it.
func TestScopesOfAnMCPServerOverlap(t *testing.T) {
	requirement := rapid.Custom(func(r *rapid.T) string {
		key := rapid.SampledFrom([]string{"a", "b"}).Draw(r, "key")
		values := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", "x"}), 1, 2).Draw(r, "values"), ",")
		return fmt.Sprintf(rapid.SampledFrom([]string{"%[1]s", "!%[1]s", "%[1]s in (%[2]s)", "%[1]s notin (%[2]s)", "%[1]s>1%.0[2]s", "%[1]s<2%.0[2]s"}).Draw(r, "form"), key, values)
	})
	rapid.Check(t, func(r *rapid.T) {
		scope := func(name string) Scope {
			s := Scope{Selector: strings.Join(rapid.SliceOfN(requirement, 0, 4).Draw(r, name), ",")}
			if err := s.validate(); err != nil {
				r.Skip(err)
			}
			return s
		}
		a, b := scope("a"), scope("b")
		common := false
		values := []string{"", "0", "1", "2", "3", "x", "y"}
		for _, first := range values {
			for _, second := range values {
				labels := map[string]string{"a": first, "b": second}
				for key, value := range labels {
					if value == "" {
						delete(labels, key)
					}
				}
				server := &metav1.ObjectMeta{Labels: labels}
				common = common || a.Covers(server) && b.Covers(server)
			}
		}
		if got := a.Overlaps(b); got != common {
			r.Errorf("%+v and %+v overlap: %v, and have an MCPServer in common: %v", a, b, got, common)
		}
	})
}
