// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/freehold-dev/freehold/apis/toolhive/v1alpha1"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/history"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

var stories = flag.Int("stories", 200, "how many stories TestStories tells; a quarter of them with -short")

// story is a cluster in which users, other controllers and other operators do what comes to their mind.
type story struct {
	*Simulation
	random *rand.Rand
	// last are earlier versions of objects, which a backup may bring back.
	last map[string]runtime.Object
}

// newStory returns a story in which nothing has happened. The seed decides what comes to their mind.
func newStory(s *Simulation, seed uint64) *story {
	return &story{Simulation: s, random: rand.New(rand.NewPCG(seed, 1)), last: map[string]runtime.Object{}}
}

// act is something that may happen in a story.
type act struct {
	name string
	do   func(s *story)
}

// acts do nothing where they are not possible.
var acts = []act{
	{"create", func(s *story) {
		if name := s.anyName(); !s.exists(toolhive, "MCPServer", name) {
			spec := s.spec()
			if name == meeting && s.random.IntN(2) == 0 {
				spec["transport"] = "stdio" // It is to have no Service of the name that meets another one's.
			}
			s.createServer(name, spec)
		}
	}},
	{"edit", func(s *story) { s.onServer(func(name string) { s.editSpec(name, s.spec()) }) }},
	{"edit", func(s *story) { s.onServer(func(name string) { s.editSpec(name, s.spec()) }) }},
	{"delete", func(s *story) { s.onServer(func(name string) { s.delete(toolhive, "MCPServer", name) }) }},
	{"restart", func(s *story) {
		s.onServer(func(name string) {
			s.annotate(name, v1beta1.AnnotationRestartedAt, fmt.Sprintf("2000-01-01T00:%02d:00Z", s.random.IntN(60)))
		})
	}},
	{"strategy", func(s *story) {
		s.onServer(func(name string) {
			s.annotate(name, v1beta1.AnnotationBackendUpdateStrategy, pick(s.random, "OnDelete", "RollingUpdate"))
		})
	}},
	{"yield", func(s *story) {
		s.onServer(func(name string) {
			s.annotate(name, v1beta1.AnnotationYield, pick(s.random, "", "deployments/"+name+":spec.replicas", "statefulsets/"+name+":spec.replicas"))
		})
	}},
	{"create config", func(s *story) {
		if !s.exists(toolhive, "MCPOIDCConfig", "corp") {
			s.Create(toolhive, "MCPOIDCConfig", object("MCPOIDCConfig", "corp", issuer("https://idp.example.com")))
		}
	}},
	{"edit config", func(s *story) {
		if s.exists(toolhive, "MCPOIDCConfig", "corp") {
			s.edit(toolhive, "MCPOIDCConfig", "corp", func(content fields) {
				content["spec"] = issuer(fmt.Sprintf("https://idp-%d.example.com", s.random.IntN(3)))
			})
		}
	}},
	{"delete config", func(s *story) {
		if s.exists(toolhive, "MCPOIDCConfig", "corp") {
			s.delete(toolhive, "MCPOIDCConfig", "corp")
		}
	}},
	{"foreign image", func(s *story) {
		s.onWorkload(func(kind, name string) {
			s.editAs("helm", "apps", kind, name, func(content fields) { setImage(content, "example.com/other") })
		})
	}},
	{"foreign scale", func(s *story) {
		s.onWorkload(func(kind, name string) { s.scale(kind, name, int64(s.random.IntN(3))) })
	}},
	{"scale subresource", func(s *story) {
		s.onWorkload(func(kind, name string) { s.scaleThrough(kind, name, int64(s.random.IntN(3))) })
	}},
	{"foreign label", func(s *story) {
		s.onChild(func(kind, group, name string) {
			s.editAs("tool", group, kind, name, func(content fields) {
				labels, _ := content["metadata"].(fields)["labels"].(fields)
				if labels == nil {
					labels = fields{}
				}
				labels["team"] = fmt.Sprint(s.random.IntN(3))
				content["metadata"].(fields)["labels"] = labels
			})
		})
	}},
	{"delete child", func(s *story) { s.onChild(func(kind, group, name string) { s.delete(group, kind, name) }) }},
	{"strip managedFields", func(s *story) {
		s.onChild(func(kind, group, name string) { s.strip(kind, group, name) })
	}},
	{"version leaves", func(s *story) {
		s.loseVersion(pick(s.random, "MCPServer", "MCPOIDCConfig"), pick(s.random, append([]string{"corp"}, names...)...))
	}},
	{"restore", func(s *story) {
		s.onChild(func(kind, group, name string) { s.restore(kind, group, name) })
	}},
	{"edit in another version", func(s *story) {
		s.onServer(func(name string) { s.patchIn(v1alpha1.SchemeGroupVersion.Version, name, s.spec()) })
	}},
	{"foreign status", func(s *story) {
		s.onServer(func(name string) {
			leaf := pick(s.random, "phase", "message", "url", "readyReplicas")
			s.setStatus(name, leaf, map[string]any{"phase": "Failed", "message": "theirs", "url": "http://theirs.example.com", "readyReplicas": int64(7)}[leaf])
		})
	}},
	{"forced apply", func(s *story) {
		s.onWorkload(func(kind, name string) { s.applyImage("gitops", kind, name, true) })
	}},
	{"impostor", func(s *story) {
		s.onWorkload(func(kind, name string) {
			s.applyImage(pick(s.random, managers.Proxy, managers.Backend), kind, name, true)
		})
	}},
	{"stale object", func(s *story) {
		s.onChild(func(kind, group, name string) { s.writeStale(kind, group, name) })
	}},
	{"object in the way", func(s *story) {
		account := &corev1.ServiceAccount{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Name: s.anyName() + pick(s.random, "-sa", "-proxy-runner")},
		}
		if s.random.IntN(2) == 0 {
			account.Labels = map[string]string{v1beta1.LabelToolHive: "true"}
		}
		if !s.exists("", "ServiceAccount", account.Name) {
			s.Create("", "ServiceAccount", account)
		}
	}},
	{"strip owners", func(s *story) {
		s.onChild(func(kind, group, name string) {
			s.editAs("tool", group, kind, name, func(content fields) { delete(content["metadata"].(fields), "ownerReferences") })
		})
	}},
	{"second operator", func(s *story) {
		if len(s.alive()) < 2 {
			s.Start()
		}
	}},
	{"restart operator", func(s *story) {
		s.Kill(s.operators[len(s.operators)-1])
		s.Start()
	}},
	{"grow too large", func(s *story) { s.onServer(func(name string) { s.editSpec(name, s.oversized()) }) }},
	{"shrink", func(s *story) { s.onServer(func(name string) { s.editSpec(name, fields{"args": nil}) }) }},
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// meeting is the name of an MCPServer whose backend Service has the name of the Service of another one's proxy.
const meeting = "web-proxy"

// names are those of MCPServers.
var names = []string{"web", "api", meeting}

func (s *story) anyName() string { return pick(s.random, names...) }

// onServer does something to an MCPServer, if there is one.
func (s *story) onServer(do func(name string)) {
	if name := s.anyName(); s.exists(toolhive, "MCPServer", name) {
		do(name)
	}
}

func (s *story) onWorkload(do func(kind, name string)) {
	kind, name := pick(s.random, "Deployment", "StatefulSet"), s.anyName()
	if s.exists("apps", kind, name) {
		do(kind, name)
	}
}

// onChild does something to any child, and keeps a copy of how it was.
func (s *story) onChild(do func(kind, group, name string)) {
	k := s.workloads.collected[s.random.IntN(len(s.workloads.collected))]
	if !isChild(k) {
		return
	}
	all := s.Server.List(k)
	if len(all) == 0 {
		return
	}
	obj := all[s.random.IntN(len(all))]
	if access(obj).GetDeletionTimestamp() != nil {
		return
	}
	key := k.Kind + "/" + access(obj).GetName()
	do(k.Kind, k.Group, access(obj).GetName())
	s.last[key] = obj
}

// strip removes the managedFields of an object, as tools do that copy objects.
func (s *story) strip(kind, group, name string) {
	k := s.Server.KindOf(group, kind)
	obj, _ := s.Server.Get(k, s.Namespace, name)
	stripped := obj.DeepCopyObject()
	access(stripped).SetManagedFields(nil)
	s.Server.Put(k, stripped)
	s.acted(func() history.Act {
		act := actOf(k, "patch", name, "tool", fields{"metadata": fields{"managedFields": []any{fields{}}}})
		act.PatchType = types.MergePatchType
		return act
	})
}

// restore brings back an earlier version of an object, as a backup does: everything but what identifies it.
func (s *story) restore(kind, group, name string) {
	k := s.Server.KindOf(group, kind)
	obj, _ := s.Server.Get(k, s.Namespace, name)
	earlier := s.last[kind+"/"+name]
	if earlier == nil || access(earlier).GetUID() != access(obj).GetUID() {
		return
	}
	s.Server.Put(k, earlier.DeepCopyObject())
}

// writeStale writes an earlier version of an object over it, as a client does that has kept one and sends it whole.
func (s *story) writeStale(kind, group, name string) {
	earlier := s.last[kind+"/"+name]
	if earlier == nil || kind == "ConfigMap" { // Ours cannot be changed.
		return
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(earlier)
	if err != nil {
		s.t.Fatal(err)
	}
	s.editAs("tool", group, kind, name, func(live fields) {
		for _, part := range []string{"spec", "rules", "subjects"} {
			if value, ok := content[part]; ok {
				live[part] = value
			}
		}
	})
}

// applyImage applies an image and nothing else, as an applier does that does not know of Freehold, or takes its name.
func (s *story) applyImage(manager, kind, name string, force bool) {
	s.t.Helper()
	clients, err := kubernetes.NewForConfig(s.Server.Connect(manager, nil, false))
	if err != nil {
		s.t.Fatal(err)
	}
	k := s.Server.KindOf("apps", kind)
	live, _ := s.Server.Get(k, s.Namespace, name)
	pods := corev1ac.PodTemplateSpec().WithSpec(corev1ac.PodSpec().WithContainers(
		corev1ac.Container().WithName(templateOf(live).Spec.Containers[0].Name).WithImage("example.com/" + manager)))
	options := metav1.ApplyOptions{FieldManager: manager, Force: force}
	var sent any
	if kind == "Deployment" {
		config := appsv1ac.Deployment(name, s.Namespace).WithSpec(appsv1ac.DeploymentSpec().WithTemplate(pods))
		_, err = clients.AppsV1().Deployments(s.Namespace).Apply(s.t.Context(), config, options)
		sent = config
	} else {
		config := appsv1ac.StatefulSet(name, s.Namespace).WithSpec(appsv1ac.StatefulSetSpec().WithTemplate(pods))
		_, err = clients.AppsV1().StatefulSets(s.Namespace).Apply(s.t.Context(), config, options)
		sent = config
	}
	switch {
	case apierrors.IsInvalid(err): // An impostor gives up what the kind cannot be without.
		return
	case err != nil:
		s.t.Fatalf("%s cannot apply: %v", manager, err)
	}
	s.acted(func() history.Act {
		act := actOf(k, "patch", name, manager, sent)
		act.PatchType, act.Force = types.ApplyYAMLPatchType, force
		return act
	})
}

// spec returns some fields of an MCPServer's spec.
func (s *story) spec() fields {
	some := fields{}
	all := fields{
		"image": "example.com/web:" + pick(s.random, "1", "2", "3"), "transport": pick(s.random, "streamable-http", "sse", "stdio"),
		"proxyPort": pick[int64](s.random, 8081, 9090), "mcpPort": pick[int64](s.random, 8080, 9091),
		"args": pick[any](s.random, nil, []any{"--debug"}), "env": pick[any](s.random, nil, []any{fields{"name": "A", "value": "1"}}),
		"replicas": pick[any](s.random, nil, int64(1), int64(2)), "backendReplicas": pick[any](s.random, nil, int64(1), int64(2)),
		"oidcConfigRef": pick[any](s.random, nil, fields{"name": "corp", "audience": "web"}),
	}
	keys := make([]string, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for range 2 {
		key := keys[s.random.IntN(len(keys))]
		some[key] = all[key]
	}
	return some
}

// oversized returns a part of a spec that is too large to be kept.
func (s *story) oversized() fields {
	if s.random.IntN(2) == 0 {
		return fields{"args": []any{strings.Repeat("x", mostText+1)}}
	}
	return fields{"args": slices.Repeat([]any{"--flag"}, mostArgs+1)}
}

// others is how FieldsOwned counts the conflicts that it does not name.
var others = regexp.MustCompile(` \(\+\d+ more\)("[^{}]*"type":"FieldsOwned")`)

// differInCount reports whether two states differ, and only in how many conflicts FieldsOwned counts: an operator that starts anew does not
// know those about a proxy that it may not try to write, such as one whose reference cannot be used.
func differInCount(before, after history.State) bool {
	uncounted := func(state history.State) map[string]string {
		all := texts(state)
		for name, text := range all {
			all[name] = others.ReplaceAllString(text, "$1")
		}
		return all
	}
	return differs(before, after) != "" && maps.Equal(uncounted(before), uncounted(after))
}

// telling is one story.
type telling struct {
	steps, acts int
	// killed counts the processes that were killed before the end.
	killed int
	faults map[Fault]int
	trace  []string
	// remains is what can be compared with a cluster that is made anew; nil for nothing.
	remains *remains
}

// tell tells a story: acts at any time, in trouble. In the end the cluster comes to rest, an operator that starts anew finds
// nothing to write, and nothing that was promised has been broken.
func tell(t *testing.T, seed uint64) (end telling) {
	t.Helper()
	Run(t, seed, func(sim *Simulation) {
		s := newStory(sim, seed)
		s.Record = true
		s.Start()
		s.createServer("web", nil)
		if seed%2 == 0 {
			s.Settle() // Most of what others do to children needs children: without this, few short stories end with a conflict.
		}
		s.Trouble(faultsPerHistory, AllFaults()...)
		// Short ones are more frequent: most of what goes wrong needs few acts, and more of them begin in the same time.
		for range 3 + s.random.IntN(1+s.random.IntN(13)) {
			act := acts[s.random.IntN(len(acts))]
			s.note("ACT " + act.name)
			act.do(s)
			end.acts++
			for range s.random.IntN(80) {
				if !s.Step() {
					s.wait1()
				}
			}
		}
		s.Settle()
		s.chaos.left = 0 // Otherwise what is to be compared may not be over.
		before, version := s.state(), s.Server.Version()
		end.killed = s.killed
		for _, o := range s.operators {
			s.Kill(o)
		}
		s.note("ACT a new operator")
		s.Start()
		s.checkConflicts()
		s.oracle.report()
		if after := s.state(); s.Server.Version() != version && !differInCount(before, after) {
			sim.t.Errorf("seed %d: an operator that starts anew writes (-before +after):\n%s", seed, differs(before, after))
		}
		end.steps, end.faults, end.trace, end.remains = s.Steps, s.Tally(), s.Trace, s.remains()
	})
	if end.remains != nil && !t.Failed() {
		end.remains.compareWithFresh(t, seed)
	}
	return end
}

// TestStories tells some stories. A short test tells fewer, as TestSimulate tells those with the same seeds and more.
func TestStories(t *testing.T) {
	count := *stories
	if testing.Short() {
		count /= 4
	}
	for n := range uint64(count) {
		t.Run(fmt.Sprint(*seed+n), func(t *testing.T) {
			t.Parallel()
			tell(t, *seed+n)
		})
	}
}
