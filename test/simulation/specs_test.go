// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/history"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

var specs = flag.Int("specs", 1, "of how many specs TestEverySpecEndsAsForANewObject tries one; 200 with -short")

// freshOf returns how it ends where the subject is created with the n-th mutation; with none for -1.
func (o *subject) freshOf(t *testing.T, n int) history.State {
	t.Helper()
	o.mu.Lock()
	once := o.fresh[n]
	if once == nil {
		once = sync.OnceValue(func() (state history.State) {
			m := unmutated
			if n >= 0 {
				m = o.accepted[n]
			}
			Run(t, *seed, func(s *Simulation) {
				s.Start()
				o.create(s, m)
				s.Settle()
				state = s.settled()
				s.oracle.report()
			})
			return state
		})
		o.fresh[n] = once
	}
	o.mu.Unlock()
	return once()
}

// made reports whether there is a proxy.
func made(state history.State) bool { return state["Deployment/web"] != nil }

// numbers are those that tell how a spec has come about, not what it is.
var numbers = regexp.MustCompile(`(uid-of-MCP[A-Za-z]+-[a-z-]+/)\d+|("(?:observedGeneration|generation)":)\d+`)

// passed is what stays of earlier specs by right: with which image the backend last served.
var passed = regexp.MustCompile(`has not served yet|last served with image [^"\\]*`)

// checksum is the annotation about certificate authorities, and what tells of its owner. Others follow both.
var checksum = regexp.MustCompile(`"[^"]*` + regexp.QuoteMeta(v1beta1.AnnotationCAChecksum) + `"(:"[^"]*")?,`)

// attached is to which process of a backend a proxy that cannot be written was attached: it stays so when that is gone.
var attached = regexp.MustCompile(`("` + regexp.QuoteMeta(v1beta1.AnnotationAttachedTo) + `":)"[^"]*"`)

// settled is what a cluster holds, whatever it has held before, without conditions of some types.
func (s *Simulation) settled(without ...string) history.State {
	s.t.Helper()
	state := s.state(without...)
	for key, object := range state {
		kind, name, _ := strings.Cut(key, "/")
		switch {
		case strings.HasPrefix(kind, "MCP"):
			object = reported(s.t, object)
		case kind == "ConfigMap":
			if slices.ContainsFunc(inventory.Servers(managers.ConfigMap, name), func(server string) bool {
				proxy := state["Deployment/"+server]
				return proxy != nil && !strings.Contains(string(proxy), name)
			}) {
				delete(state, key) // An earlier revision reads it.
				continue
			}
		case kind == "StatefulSet":
			object = withoutRides(s.t, object)
		case kind == "Deployment":
			object = withoutEmptyAffinity(s.t, object)
		}
		state[key] = passed.ReplaceAll(numbers.ReplaceAll(object, []byte("${1}${2}0")), nil)
	}
	return unsalted(s.t, state)
}

// withoutRides is the StatefulSet without what stays in its template although the spec has changed: the label that Freehold leaves as
// it is until the template changes for another cause, and the API server's default for how to pull an image, which stays that of
// the first image. The names of the revisions, which tell of both, are left out too.
func withoutRides(t *testing.T, object json.RawMessage) json.RawMessage {
	t.Helper()
	whole := fields{}
	if err := json.Unmarshal(object, &whole); err != nil {
		t.Fatal(err)
	}
	set := whole["object"].(fields)
	unstructured.RemoveNestedField(set, "spec", "template", "metadata", "labels", "toolhive-port")
	containers, _, _ := unstructured.NestedSlice(set, "spec", "template", "spec", "containers")
	for _, container := range containers {
		delete(container.(fields), "imagePullPolicy")
	}
	if err := unstructured.SetNestedSlice(set, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(set, "status", "currentRevision")
	unstructured.RemoveNestedField(set, "status", "updateRevision")
	return json.RawMessage(text(whole))
}

// withoutEmptyAffinity is the Deployment without what there is of an affinity that has no rule, which means the same as none: one that
// was emptied is gone, one that was always empty is there.
func withoutEmptyAffinity(t *testing.T, object json.RawMessage) json.RawMessage {
	t.Helper()
	whole := fields{}
	if err := json.Unmarshal(object, &whole); err != nil {
		t.Fatal(err)
	}
	pod, _, _ := unstructured.NestedFieldNoCopy(whole, "object", "spec", "template", "spec")
	if affinity, ok := pod.(fields)["affinity"].(fields); ok {
		maps.DeleteFunc(affinity, func(_ string, rules any) bool { return len(rules.(fields)) == 0 })
		if len(affinity) == 0 {
			delete(pod.(fields), "affinity")
		}
	}
	return json.RawMessage(text(whole))
}

// reported is what the operator has written of a custom resource. What it says besides, and who wrote that, is the author's.
func reported(t *testing.T, object json.RawMessage) json.RawMessage {
	t.Helper()
	var whole struct {
		Object struct {
			Status   json.RawMessage
			Metadata struct{ Finalizers []string }
		}
		Owners map[string][]string
	}
	if err := json.Unmarshal(object, &whole); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(whole.Owners, func(owner string, _ []string) bool { return !strings.HasPrefix(owner, "freehold-") })
	return json.RawMessage(text(map[string]any{
		"finalizers": whole.Object.Metadata.Finalizers, "status": whole.Object.Status, "owners": whole.Owners,
	}))
}

// TestEverySpecEndsAsForANewObject sets every field of an MCPServer's spec to several values, and that of every configuration that an
// MCPServer refers to. A spec that the API server refuses costs nothing. One that it accepts ends as it does for an object that is created
// with it; so does the next one, and the one that it had before. Where a spec cannot be used, the proxy goes on as it was until the next
// one.
func TestEverySpecEndsAsForANewObject(t *testing.T) {
	configs, err := configSubjects()
	if err != nil {
		t.Fatal(err)
	}
	of := map[string][]*subject{}
	for _, o := range configs {
		of[o.it().GetKind()] = append(of[o.it().GetKind()], o)
	}
	all, err := schemas()
	if err != nil {
		t.Fatal(err)
	}
	for kind := range all {
		if len(of[kind]) == 0 {
			t.Errorf("there is no %s whose fields are changed", kind)
		}
	}
	share := *specs
	if testing.Short() {
		share = 200
	}
	number := 0
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		prepare(t, of[kind])
		for _, o := range of[kind] {
			t.Run(fmt.Sprint(o.label, " refused"), func(t *testing.T) {
				t.Parallel()
				o.refuse(t)
			})
			for n := range o.accepted {
				if number++; number%share != int(*seed%uint64(share)) {
					continue
				}
				t.Run(fmt.Sprint(o.label, n, o.accepted[n].field), func(t *testing.T) {
					t.Parallel()
					o.change(t, n)
				})
			}
		}
	}
	t.Logf("%d specs", number)
}

// refuse tries what the API server refuses.
func (o *subject) refuse(t *testing.T) {
	t.Helper()
	Run(t, *seed, func(s *Simulation) {
		s.Start()
		o.create(s, unmutated)
		s.Settle()
		version := s.Server.Version()
		for _, m := range o.refused {
			if err := o.edit(s, m.of(o.spec())); !apierrors.IsInvalid(err) {
				s.t.Errorf("%s is refused in a new object, and of an edit the API server says %v", &m, err)
			}
		}
		s.Settle()
		if s.Server.Version() != version {
			s.t.Errorf("all is refused, and something is written")
		}
	})
}

// change edits from one accepted spec to the next and back.
func (o *subject) change(t *testing.T, n int) {
	t.Helper()
	// Which specs come after one another differs from seed to seed.
	then := (n + 1 + int(*seed%uint64(len(o.accepted)))) % len(o.accepted)
	fresh := map[int]history.State{}
	for _, one := range []int{n, then, -1} {
		fresh[one] = o.freshOf(t, one)
	}
	Run(t, *seed, func(s *Simulation) {
		s.Record = true
		s.Start()
		o.create(s, unmutated)
		s.Settle()
		before, named := s.settled(), "nothing"
		for _, one := range []int{n, then, -1} {
			m := unmutated
			if one >= 0 {
				m = o.accepted[one]
			}
			if err := o.edit(s, m.of(o.spec())); err != nil {
				s.t.Fatalf("%s: %v", &m, err)
			}
			s.Settle()
			now := s.settled()
			diff := differs(fresh[one], withoutChecksum(m.field, fresh[one], now))
			if !made(fresh[one]) {
				diff = cmp.Diff(o.held(s.t, fresh[one], before), o.held(s.t, now, now))
			}
			if diff != "" {
				s.t.Errorf("%s after %s ends otherwise than what is created so (-created +edited):\n%s", &m, named, diff)
			}
			if strings.HasSuffix(strings.ToLower(m.field), "replicas") {
				break // A number that is not asked for any more stays as it is.
			}
			before, named = now, m.String()
		}
		s.oracle.report()
	})
}

// withoutChecksum returns a state without the checksum of certificate authorities, if the field refers to some and what is created so has
// none: while they are missing, the earlier checksum stays, so that the proxy is not rolled out.
func withoutChecksum(field string, fresh, now history.State) history.State {
	if !strings.Contains(field, "caBundleRef.") || strings.Contains(string(fresh["Deployment/web"]), v1beta1.AnnotationCAChecksum) {
		return now
	}
	now = maps.Clone(now)
	now["Deployment/web"] = checksum.ReplaceAll(now["Deployment/web"], nil)
	return now
}

// held is what is to be seen of a spec that cannot be used, in the place of one that could: the proxy is as it was before, and so is
// everything else unless the spec is the MCPServer's own, whose backend goes on. The conditions are those of an object that is
// created so, but for what they say of the proxy that there is.
func (o *subject) held(t *testing.T, conditions, rest history.State) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for key, object := range rest {
		if !strings.HasPrefix(key, "MCP") && (o.it().GetKind() != v1beta1.MCPServerKind || key == "Deployment/web" || strings.HasPrefix(key, "ConfigMap/")) {
			seen[key] = attached.ReplaceAllString(string(object), "${1}")
		}
	}
	for key, object := range conditions {
		if !strings.HasPrefix(key, "MCP") {
			continue
		}
		var whole struct {
			Status struct {
				Conditions []struct{ Type, Status, Reason, Message string }
			}
		}
		if err := json.Unmarshal(object, &whole); err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		for _, c := range whole.Status.Conditions {
			if slices.Contains([]string{v1beta1.ConditionRolledOut, v1beta1.ConditionApplied, v1beta1.ConditionFieldsOwned}, c.Type) {
				continue // They tell of what was applied last. A new object has had nothing applied.
			}
			says := fmt.Sprint(c.Status, " ", c.Reason)
			if key != "MCPServer/web" {
				says += ": " + c.Message
			}
			seen[key+" "+c.Type] = says
		}
	}
	return seen
}
