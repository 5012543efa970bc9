// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestTakeoverReplicas takes over workloads whose numbers of pods come from somewhere else: they stay at any moment.
// They are owned by the writer for it where the MCPServer names a number, by an autoscaler where it has set one, and by
// nobody else.
func TestTakeoverReplicas(t *testing.T) {
	t.Parallel()
	s := newInstallation(t)
	type number struct {
		component harness.Component
		count     int64
		// owners are those that it has after the takeover.
		owners []string
	}
	cases := map[string]struct {
		of string
		// set is a number that ToolHive's operator has written in the course of time; 0 for none.
		set  int64
		want []number
	}{
		"unnamed":        {"edited", 4, []number{{harness.Proxy, 4, nil}, {harness.Backend, 1, nil}}},
		"unnamed-opened": {"plain", 3, []number{{harness.Proxy, 3, nil}, {harness.Backend, 1, nil}}},
		"unnamed-stdio":  {"edited-stdio", 0, []number{{harness.Proxy, 1, nil}, {harness.Backend, 1, nil}}},
		"named": {"numbers", 0, []number{
			{harness.Proxy, 2, []string{managers.ProxyReplicas}}, {harness.Backend, 2, []string{managers.BackendReplicas}},
		}},
		"autoscaled": {"scaled", 0, []number{
			{harness.Proxy, 2, []string{"kube-controller-manager"}}, {harness.Backend, 2, nil},
		}},
	}
	for name, c := range cases {
		s.install(t, c.of, name)
		if c.set > 0 {
			s.MustPatch(t, managers.ToolHiveOperator, harness.Proxy, name, harness.Replace("/spec/replicas", c.set))
			s.awaitRolledOut(t, name)
		}
	}
	histories := map[harness.Component]*harness.History{}
	for _, component := range []harness.Component{harness.Proxy, harness.Backend} {
		histories[component] = s.Record(t, harness.FormOf(component).Resource)
	}
	s.Operate(t)
	for name, c := range cases {
		s.awaitTakenOver(t, name)
		for _, want := range c.want {
			object := s.MustObject(t, want.component, name)
			if got := harness.ManagersOf(object, ".spec.replicas"); !slices.Equal(got, want.owners) {
				t.Errorf("%s of %s: the number is owned by %q, want %q", want.component, name, got, want.owners)
			}
			versions := slices.DeleteFunc(harness.Named(name, histories[want.component].Complete(t)), func(v harness.Version) bool {
				return v.Listed
			})
			if len(versions) < 2 {
				t.Errorf("%s of %s had %d versions", want.component, name, len(versions))
			}
			for _, version := range append(versions, harness.Version{Unstructured: object}) {
				if got, _, _ := unstructured.NestedInt64(version.Object, "spec", "replicas"); got != want.count {
					t.Errorf("%s of %s had %d replicas in version %s, want %d", want.component, name, got, version.GetResourceVersion(), want.count)
				}
			}
		}
	}
	// What is nobody's is there for any scaler to set.
	const more = 5
	for _, name := range []string{"unnamed", "autoscaled"} {
		s.scale(t, harness.Proxy, name, "another-scaler", more)
		s.awaitRolledOut(t, name)
		s.AwaitSettled(t, name)
	}
	s.AwaitRest(t)
	for _, name := range []string{"unnamed", "autoscaled"} {
		if got, _, _ := unstructured.NestedInt64(s.MustObject(t, harness.Proxy, name).Object, "spec", "replicas"); got != more {
			t.Errorf("%s was scaled to %d, and has %d replicas", name, more, got)
		}
		s.AwaitNoConflict(t, name)
	}
}
