// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/internal/history"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
)

// handback is MCPServers that are handed back to ToolHive.
type handback struct {
	name string
	// before is what there is, and at rest, before it begins.
	before func(s *Simulation)
	// args say what is handed back.
	args []string
}

func handbacks() []handback {
	web := []string{"mcpserver/web"}
	return []handback{
		{"plain", one(nil), web},
		{"stdio", one(fields{"transport": "stdio"}), web},
		{"replicas and policies", one(fields{
			"replicas": int64(2), "backendReplicas": int64(2),
			"authzConfig": fields{"type": "inline", "inline": fields{"policies": []any{"permit(principal, action, resource);"}}},
		}), web},
		{"references", authenticated, web},
		{"all", func(s *Simulation) {
			authenticated(s)
			s.createServer("api", fields{"oidcConfigRef": fields{"name": "corp", "audience": "api"}})
		}, []string{"-A"}},
		{"of what was taken over", func(s *Simulation) { s.restore("plain") }, web},
		{"edited by another", func(s *Simulation) {
			s.createServer("web", nil)
			s.Settle()
			s.scale("Deployment", "web", 2)
			s.editAs("tool", "apps", "StatefulSet", "web", func(content fields) { content["metadata"].(fields)["labels"].(fields)["team"] = "shop" })
		}, web},
	}
}

// handedBack is how a handback ended.
type handedBack struct {
	// before is what there was.
	before, state history.State
	rolls         map[string]int
	writes        int
	trace         []string
}

// play hands back, with crashes of the plugin. What calls instead of another run of the plugin is midway, if it is not nil; then the
// plugin runs once more.
func (h handback) play(t *testing.T, seed uint64, midway func(s *Simulation), crashes ...crash) (end handedBack) {
	t.Helper()
	Run(t, seed, func(s *Simulation) {
		s.Record = true
		s.oracle.mayTake = func(manager string) bool {
			return manager == managers.ToolHiveOperator || manager == managers.ToolHiveRunner || manager == managers.Plugin
		}
		o := s.Start()
		h.before(s)
		s.Settle()
		s.Kill(o)
		end.before = s.state()
		s.requests, s.sinceCrash, s.Trace = 0, 0, nil
		s.oracle.rolls = map[string]int{}
		s.crashes = crashes
		var run *pluginRun
		var begin func()
		begin = func() {
			again := begin
			if midway != nil {
				again = func() {}
			}
			run = s.Plugin(again, append([]string{"handback", "--yes"}, h.args...)...)
		}
		begin()
		s.Settle()
		// The plugin reads what belongs to several MCPServers side by side, with requests that look alike. In which order these are
		// carried out no seed decides, and one history may have some writes less than another.
		if len(s.crashes) > 0 && len(crashes) > 0 && s.requests >= crashes[0].at {
			s.t.Errorf("the plugin was not killed at %v", s.crashes)
		}
		s.crashes = nil // They are for the plugin alone, not for what midway starts.
		if midway != nil {
			midway(s)
			begin()
			s.Settle()
		}
		if run.code != cmd.ExitDone {
			s.t.Errorf("it ends with %d: %s", run.code, run.out)
		}
		end.state, end.rolls, end.writes, end.trace = s.state(), s.oracle.rolls, s.requests, s.Trace
		s.oracle.report()
		s.checkHandedBack()
		if diff := differs(whatStays(s.t, end.before), whatStays(s.t, end.state)); diff != "" {
			s.t.Errorf("it changed what was to stay (-before +after):\n%s", diff)
		}
	})
	return end
}

// checkHandedBack checks that neither Freehold's operator nor the plugin owns anything.
func (s *Simulation) checkHandedBack() {
	s.t.Helper()
	for _, k := range s.workloads.collected {
		if k.Kind == "Pod" || k.Kind == "ReplicaSet" {
			continue // They are made of templates, whose annotations stay.
		}
		for _, obj := range s.Server.List(k) {
			for _, entry := range access(obj).GetManagedFields() {
				if managers.ClassOf(entry.Manager, "") == managers.ClassFreehold || entry.Manager == managers.Plugin {
					s.t.Errorf("%s %s: %s owns something: %s", k.Kind, access(obj).GetName(), entry.Manager, entry.FieldsV1)
				}
			}
			for _, marks := range []map[string]string{access(obj).GetAnnotations(), access(obj).GetLabels()} {
				for key, value := range marks {
					if isMark(key, value) {
						s.t.Errorf("%s %s still has %s: %s", k.Kind, access(obj).GetName(), key, value)
					}
				}
			}
		}
	}
}

// isMark says whether an annotation or a label says that Freehold manages the object, which a handback takes back.
func isMark(key, value string) bool {
	return strings.HasPrefix(key, "freehold.dev/") || key == v1beta1.LabelAppManagedBy && value == v1beta1.AppManagedBy
}

// whatStays returns what a handback leaves as it is: all values but those that ToolHive needs to be different, and what other managers
// than Freehold's and ToolHive's own. The status of a workload changes with its pods.
func whatStays(t *testing.T, state history.State) history.State {
	t.Helper()
	stays := history.State{}
	for key, object := range state {
		var whole struct {
			Object fields              `json:"object"`
			Owners map[string][]string `json:"owners"`
		}
		if err := json.Unmarshal(object, &whole); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(whole.Owners, func(owner string, _ []string) bool {
			manager, _, _ := strings.Cut(owner, " ")
			class := managers.ClassOf(manager, "")
			return class == managers.ClassFreehold || class == managers.ClassToolHive || manager == managers.Plugin || manager == controllerManager
		})
		for _, marks := range []string{"annotations", "labels"} {
			set, _, _ := unstructured.NestedStringMap(whole.Object, "metadata", marks)
			maps.DeleteFunc(set, isMark)
			delete(whole.Object["metadata"].(fields), marks)
			if len(set) > 0 {
				whole.Object["metadata"].(fields)[marks] = set
			}
		}
		switch kind, name, _ := strings.Cut(key, "/"); {
		case kind == "Role":
			delete(whole.Object, "rules")
		case kind == "Service" && name != inventory.ProxyService.Name("web") && name != inventory.ProxyService.Name("api"):
			delete(whole.Object["metadata"].(fields), "ownerReferences") // The StatefulSet owns it then.
		case kind == "Deployment":
			delete(whole.Object, "status")
		case kind == "StatefulSet":
			delete(whole.Object, "status")
			unstructured.RemoveNestedField(whole.Object, "spec", "template", "metadata", "annotations", v1beta1.AnnotationGeneration)
		case strings.HasPrefix(kind, "MCP"):
			conditions, _, _ := unstructured.NestedSlice(whole.Object, "status", "conditions")
			conditions = slices.DeleteFunc(conditions, func(c any) bool {
				return slices.Contains(v1beta1.FreeholdConditions(), fmt.Sprint(c.(fields)["type"]))
			})
			unstructured.RemoveNestedField(whole.Object, "status", "conditions")
			whole.Object["conditions"] = conditions
		}
		// The pod of a backend that is rolled out is another one.
		stays[key] = attached.ReplaceAll([]byte(text(whole)), []byte("${1}"))
	}
	return stays
}

// TestHandback kills the plugin at every request by which it hands MCPServers back, and runs it again: they are handed back as they
// are without that.
func TestHandback(t *testing.T) {
	for _, h := range handbacks() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			reference := h.play(t, *seed, nil)
			for at := 1; at <= reference.writes; at++ {
				for _, phase := range []Phase{Before, Committed, Answered} {
					if testing.Short() && (3*at+int(phase)+int(*seed%24))%24 != 0 { // one phase of every eighth request
						continue
					}
					what := fmt.Sprintf("killed at request %d, %s", at, phase)
					h.compare(t, what, reference, h.play(t, *seed, nil, crash{at: at, phase: phase}))
				}
			}
			t.Logf("%d requests", reference.writes)
		})
	}
}

func (h handback) compare(t *testing.T, what string, want, got handedBack) {
	t.Helper()
	if diff := differs(want.state, got.state); diff != "" {
		t.Errorf("%s: ends otherwise (-reference +this):\n%s\n%s", what, diff, strings.Join(got.trace, "\n"))
	}
	for workload, n := range got.rolls {
		if n > want.rolls[workload] {
			t.Errorf("%s: pods were replaced by %s %d times, not %d\n%s", what, workload, n, want.rolls[workload], strings.Join(got.trace, "\n"))
		}
	}
}

// TestAnOperatorTakesAnInterruptedHandbackBack kills the plugin at every request, and starts the operator again: it takes back what was
// handed back already. Then the operator is stopped, and all is handed back as it is without that.
func TestAnOperatorTakesAnInterruptedHandbackBack(t *testing.T) {
	for _, h := range handbacks() {
		if h.name == "of what was taken over" {
			continue // The operator that comes back tells of a conflict, and what the status says of that stays. See docs/reliability.md.
		}
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			reference := h.play(t, *seed, nil)
			// There, back, and there again; and with transport stdio a proxy follows the process of its backend.
			for _, workload := range []string{"Deployment/web", "StatefulSet/web", "Deployment/api", "StatefulSet/api"} {
				reference.rolls[workload] = 3
			}
			for at := 1; at <= reference.writes+1; at++ { // the last time it is not killed
				if testing.Short() && at%8 != int(*seed%8) && at <= reference.writes {
					continue
				}
				phase := Phase((at + int(*seed%3)) % 3)
				what := fmt.Sprintf("killed at request %d of %d, %s", at, reference.writes, phase)
				h.compare(t, what, reference, h.play(t, *seed, func(s *Simulation) {
					o := s.Start()
					s.Settle()
					s.Kill(o)
				}, crash{at: at, phase: phase}))
			}
		})
	}
}

// TestAHandbackEndsWhileAStatefulSetIsBusy hands back while the StatefulSet's status changes before every request of the plugin, for as
// long as a rollout may last.
func TestAHandbackEndsWhileAStatefulSetIsBusy(t *testing.T) {
	busy := handback{"busy", func(s *Simulation) {
		s.createServer("web", nil)
		var first time.Time
		s.meddle = func(_ int, r *apiserver.Request) *fate {
			if r.Manager != managers.Plugin || r.Kind != s.workloads.sets || r.DryRun() {
				return nil
			}
			if first.IsZero() {
				first = time.Now()
			}
			if time.Since(first) < 5*time.Second {
				if err := s.Server.Edit(r.Kind, r.Namespace, r.Name, "status", controllerManager, func(obj runtime.Object) {
					obj.(*appsv1.StatefulSet).Status.Conditions = []appsv1.StatefulSetCondition{
						{Type: "Busy", Status: "True", Message: fmt.Sprint(s.Steps)},
					}
				}); err != nil {
					t.Error(err)
				}
			}
			return nil
		}
	}, []string{"mcpserver/web"}}
	busy.play(t, *seed, nil)
}
