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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/internal/history"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
)

// unsalted is a state in which each document of a proxy's is under its own name.
func unsalted(t *testing.T, state history.State) history.State {
	t.Helper()
	var names []string
	for _, key := range slices.Sorted(maps.Keys(state)) {
		name, isConfig := strings.CutPrefix(key, "ConfigMap/")
		if !isConfig {
			continue
		}
		var whole struct {
			Object unstructured.Unstructured `json:"object"`
			Owners map[string][]string       `json:"owners"`
		}
		if err := json.Unmarshal(state[key], &whole); err != nil {
			t.Fatal(err)
		}
		data, _, _ := unstructured.NestedStringMap(whole.Object.Object, "data")
		if data[render.SaltKey] == "" {
			continue
		}
		delete(data, render.SaltKey)
		unstructured.RemoveNestedField(whole.Object.Object, "data", render.SaltKey)
		for _, server := range inventory.Servers(managers.ConfigMap, name) {
			child := inventory.Named(apply.NewObjectRef(managers.ConfigMap, whole.Object.GetNamespace(), name), server)
			names = append(names, name, child.ContentName(server, data))
		}
		for owner, paths := range whole.Owners {
			whole.Owners[owner] = slices.DeleteFunc(paths, func(path string) bool { return path == ".data."+render.SaltKey })
		}
		state[key] = json.RawMessage(text(fields{"object": whole.Object.Object, "owners": whole.Owners}))
	}
	if len(names) == 0 {
		return state
	}
	same, own := history.State{}, strings.NewReplacer(names...)
	for key, object := range state {
		same[own.Replace(key)] = json.RawMessage(own.Replace(string(object)))
	}
	return same
}

// TestAScenarioEndsAlikeAfterASquatter plays each scenario while a client takes the names of Freehold's children again and again, for half an hour.
// It ends as it does without, but for the names of ConfigMaps, also where the ConfigMaps of the client stay. What its objects are in the way of,
// and which pods may have read one, is in the status meanwhile, which Settle looks for.
func TestAScenarioEndsAlikeAfterASquatter(t *testing.T) {
	var sum total
	sum.report(t)
	each(t, slices.DeleteFunc(slices.Concat(scenarios(), guardedScenarios()), dependsOnOthers), func(t *testing.T, sc scenario, reference outcome) {
		t.Helper()
		share := newPortion(t, 12)
		defer sum.add(share)
		for _, what := range squats {
			if !share.has() {
				continue
			}
			t.Run(what.name, func(t *testing.T) {
				end := playWith(t, sc, *seed, func(s *Simulation) { s.Squat(what, 30*time.Minute) })
				compareSettled(t, reference, end)
			})
		}
		if share.has() {
			t.Run("beforehand", func(t *testing.T) {
				compareSettled(t, reference, playWith(t, sc, *seed, func(s *Simulation) { s.squatBeforehand(reference.state) }))
			})
		}
	})
}

// permitting is a spec with an inline policy.
func permitting(policy string) fields {
	return fields{"authzConfig": fields{"type": "inline", "inline": fields{"policies": []any{policy}}}}
}

// guardedScenarios are those of MCPServers with an inline policy.
func guardedScenarios() []scenario {
	const all, none = "permit(principal, action, resource);", "forbid(principal, action, resource);"
	return []scenario{
		named("another policy", edited(permitting(all), permitting(none))),
		named("a policy and another image", edited(permitting(all), fields{"image": "example.com/web:2"})),
		named("a policy at rest", edited(permitting(all), fields{})),
	}
}

// TestAProxyThatCannotBeWrittenSaysWhatItsPodsMayRead has another field manager own the image of a proxy, so that the proxy cannot be replaced while
// a client squats. Settle looks for what the status says.
func TestAProxyThatCannotBeWrittenSaysWhatItsPodsMayRead(t *testing.T) {
	for _, what := range squats {
		if what.kind != managers.ConfigMap.Kind || what.name == ofAnother {
			continue
		}
		t.Run(what.name, func(t *testing.T) {
			t.Parallel()
			Run(t, *seed, func(s *Simulation) {
				s.Record = true
				s.Start()
				s.createServer("web", permitting("permit(principal, action, resource);"))
				s.Settle()
				s.editAs("helm", "apps", "Deployment", "web", func(content fields) { setImage(content, "example.com/other") })
				s.Settle()
				s.Squat(what, 10*time.Minute)
				s.Settle()
				proxy, _ := s.Server.Get(s.workloads.deployments, s.Namespace, "web")
				if stays := len(s.oracle.spoilt(s.oracle.servers()[0], &templateOf(proxy).Spec)) > 0; stays != what.leaves {
					t.Errorf("the proxy names a ConfigMap of the squatter: %t", stays)
				}
				s.oracle.report()
			})
		})
	}
}

// compareSettled compares two ends, whatever has been before.
func compareSettled(t *testing.T, want, got outcome) {
	t.Helper()
	if diff := differs(want.settled, got.settled); diff != "" {
		t.Errorf("ends otherwise (-reference +this):\n%s\n%s", diff, strings.Join(got.trace, "\n"))
	}
}

// squatBeforehand makes ConfigMaps of all names that proxies will have, before Freehold does.
func (s *Simulation) squatBeforehand(end history.State) {
	k := s.Server.KindOf("", "ConfigMap")
	for _, key := range slices.Sorted(maps.Keys(end)) {
		name, isConfig := strings.CutPrefix(key, "ConfigMap/")
		if _, taken := s.Server.Get(k, s.Namespace, name); !isConfig || taken || !inventory.HasDigest(name) {
			continue
		}
		theirs := &corev1.ConfigMap{Data: map[string]string{"runconfig.json": "{}", "authz.json": "{}"}}
		theirs.Name, theirs.Namespace = name, s.Namespace
		if err := s.Server.Create(k, theirs, squatter); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestOracleFindsAProxyThatReadsWhatAnotherClientMade changes ConfigMaps while no operator runs, so the status stays as it is.
func TestOracleFindsAProxyThatReadsWhatAnotherClientMade(t *testing.T) {
	for name, test := range map[string]struct {
		change func(config *corev1.ConfigMap)
		want   string
	}{
		"as it was":       {func(*corev1.ConfigMap) {}, ""},
		"another label":   {func(config *corev1.ConfigMap) { config.Labels["team"] = "shop" }, ""},
		"another content": {func(config *corev1.ConfigMap) { config.Data = map[string]string{"runconfig.json": "{}"} }, "the next pod of web reads"},
		"one file more":   {func(config *corev1.ConfigMap) { config.BinaryData = map[string][]byte{"a": []byte("b")} }, "the status says Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			Run(t, 1, func(s *Simulation) {
				s.tamper("apps", "Deployment", "web", func(runtime.Object) {})
				k := s.Server.KindOf("", "ConfigMap")
				for _, obj := range s.Server.List(k) {
					changed := obj.DeepCopyObject().(*corev1.ConfigMap)
					test.change(changed)
					s.Server.Put(k, changed)
				}
				found := strings.Join(s.oracle.misread(), "\n")
				if test.want == "" && found != "" || !strings.Contains(found, test.want) {
					t.Errorf("found %q, want %q", found, test.want)
				}
			})
		})
	}
}

// TestOracleFindsWhatNobodyHasTold: what a squatter's object was in the way of is in the status while it is.
func TestOracleFindsWhatNobodyHasTold(t *testing.T) {
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprint(told), func(t *testing.T) {
			Run(t, 1, func(s *Simulation) {
				s.Start()
				s.createServer("web", nil)
				s.Settle()
				what := squats[slices.IndexFunc(squats, func(q squat) bool { return q.kind == "ServiceAccount" })]
				s.Squat(what, 5*time.Minute)
				for s.squatter != nil {
					if !s.Step() {
						s.wait1()
					}
					if s.squatter != nil {
						s.oracle.noteUntold()
						for _, object := range s.inTheWay() {
							if !told {
								s.squatter.untold = append(s.squatter.untold, types.NamespacedName{Namespace: s.Namespace, Name: object.GetName()})
							}
						}
					}
				}
				s.settle()
				if found := s.oracle.untold(); (len(found) == 0) != told {
					t.Errorf("found %q", found)
				}
			})
		})
	}
}

// TestOracleFindsAProxyThatIsReplacedForEachSquat: a document gets another name a few times in ten minutes and no more.
func TestOracleFindsAProxyThatIsReplacedForEachSquat(t *testing.T) {
	for pause, found := range map[time.Duration]bool{time.Minute: true, 3 * time.Minute: false} {
		t.Run(pause.String(), func(t *testing.T) {
			Run(t, 1, func(s *Simulation) {
				r := &apiserver.Request{Client: "operator-0", Verb: "apply", Kind: s.Server.KindOf("", "ConfigMap"), Body: []byte(`{}`)}
				for n := range mostAsides + 1 {
					name := fmt.Sprintf("web-runconfig-%016x", n)
					s.oracle.checkAside(r, watch.Added, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{render.SaltKey: "u"}})
					time.Sleep(pause)
				}
				if got := len(s.oracle.violations) > 0; got != found {
					t.Errorf("%v", s.oracle.violations)
				}
			})
		})
	}
}
