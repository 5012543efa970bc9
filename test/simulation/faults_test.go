// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/internal/history"
)

// portion chooses what is played of a grid: all of it, or, in short mode, one point in so many, by the seed.
type portion struct {
	random         *rand.Rand
	oneIn          int
	played, points int
}

func newPortion(t *testing.T, oneIn int) *portion {
	t.Helper()
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name()))
	return &portion{random: rand.New(rand.NewPCG(*seed, name.Sum64())), oneIn: oneIn}
}

func (s *portion) has() bool {
	s.points++
	if testing.Short() && s.random.IntN(s.oneIn) > 0 {
		return false
	}
	s.played++
	return true
}

// total sums the portions of all scenarios up.
type total struct{ played, points atomic.Int64 }

func (sum *total) add(s *portion) {
	sum.played.Add(int64(s.played))
	sum.points.Add(int64(s.points))
}

// report logs the sum once all scenarios have been played.
func (sum *total) report(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { t.Logf("%d histories of %d", sum.played.Load(), sum.points.Load()) })
}

// anew replaces the operator, so that its successor has yet to list and to watch when users act.
func anew(s *Simulation) {
	s.Kill(s.operators[0])
	s.Start()
}

// onceAt lets a request have a fate.
func onceAt(s *Simulation, at int, f *fate) {
	s.meddle = func(number int, _ *apiserver.Request) *fate {
		if number == at {
			return f
		}
		return nil
	}
}

// readFates are how many fates each request has that an operator reads with when it starts. All operators start alike, so over
// the scenarios each request has every one several times.
const readFates = 3

// TestFaults lets each request of each scenario have each fate of the table, once. It ends as it does without. Of the fates that
// clients and operator take in the same way a request has one, and over the requests they take turns.
//
// Requests of a start, which come before those that act on an MCPServer, are played apart: there the operator starts while users act.
func TestFaults(t *testing.T) {
	var sum total
	sum.report(t)
	eachScenario(t, func(t *testing.T, sc scenario, reference outcome) {
		t.Helper()
		share := newPortion(t, 90)
		defer sum.add(share)
		try := func(what string, at int, a asked, f *fate, prepare func(s *Simulation)) {
			if !share.has() {
				return
			}
			end := playWith(t, sc, *seed, func(s *Simulation) {
				prepare(s)
				onceAt(s, at, f)
			})
			compareOnce(t, fmt.Sprintf("%s %d, %s: %s", what, at, a.text, f.name), reference, end, f)
		}
		offset := int(fnvOf(t.Name()))
		for i, a := range reference.asked {
			for _, f := range possible(a, offset+i) {
				try("request", i+1, a, f, func(*Simulation) {})
			}
		}
		started := playWith(t, sc, *seed, anew)
		compare(t, "with an operator that starts", reference, started)
		for i, a := range started.asked {
			if a.writes {
				continue
			}
			all := possible(a, offset)
			for n := range readFates {
				try("start, request", i+1, a, all[(offset+n*len(all)/readFates)%len(all)], anew)
			}
			offset++
		}
		t.Logf("%d requests, %d with a start", len(reference.asked), len(started.asked))
	})
}

// TestATakeoverTakesWhatOneReadDidNotFind answers each read of each takeover once as if there were no such object. What ToolHive made of
// that name is taken over all the same.
func TestATakeoverTakesWhatOneReadDidNotFind(t *testing.T) {
	var sum total
	sum.report(t)
	each(t, takeovers(), func(t *testing.T, sc scenario, reference outcome) {
		t.Helper()
		share := newPortion(t, 3)
		defer sum.add(share)
		for i, a := range reference.asked {
			for _, f := range possible(a, 0) {
				if !f.lies || !share.has() {
					continue
				}
				end := playWith(t, sc, *seed, func(s *Simulation) { onceAt(s, i+1, f) })
				compareOnce(t, fmt.Sprintf("request %d, %s: %s", i+1, a.text, f.name), reference, end, f)
			}
		}
	})
}

func fnvOf(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32() >> 1
}

// compareWith compares the ends of two histories; in the second one a request had a fate. What a webhook has added is not counted.
func compareWith(t *testing.T, what string, want, got outcome, f *fate) {
	t.Helper()
	if f.mutates {
		want.state, got.state = withoutWebhook(t, want.state), withoutWebhook(t, got.state)
		want.spare++ // A sidecar that is injected with a write of something else rolls the pods out.
	}
	compare(t, what, want, got)
}

// compareOnce does so where the fate was that of one request, which holds nothing up for longer than seconds. What waits for a change of the
// cluster is tried again after waits that double, so one more of them is as long as all before it.
func compareOnce(t *testing.T, what string, want, got outcome, f *fate) {
	t.Helper()
	compareWith(t, what, want, got, f)
	most := f.takes + afterFate
	if want.later > 0 {
		most += want.took
	}
	if longer := got.took - want.took; longer > most {
		t.Errorf("%s: it takes %s longer\n%s", what, longer, strings.Join(got.trace, "\n"))
	}
}

// afterFate is how much later a scenario may end because one request had a fate, beside what the fate itself takes.
const afterFate = 20 * time.Second

// withoutWebhook returns a state without what the webhook of admit has added.
func withoutWebhook(t *testing.T, state history.State) history.State {
	t.Helper()
	clean := history.State{}
	for name, text := range state {
		var whole fields
		if err := json.Unmarshal(text, &whole); err != nil {
			t.Fatal(err)
		}
		content := whole["object"].(fields)
		for _, path := range [][]string{
			{"metadata", "labels"}, {"metadata", "annotations"}, {"spec", "template", "metadata", "annotations"},
		} {
			unstructured.RemoveNestedField(content, append(path, mark)...)
			if left, found, _ := unstructured.NestedMap(content, path...); found && len(left) == 0 {
				unstructured.RemoveNestedField(content, path...)
			}
		}
		for _, revision := range []string{"currentRevision", "updateRevision"} { // It is a hash of the template.
			unstructured.RemoveNestedField(content, "status", revision)
		}
		pods := []string{"spec", "template", "spec", "containers"}
		if containers, found, _ := unstructured.NestedSlice(content, pods...); found {
			containers = slices.DeleteFunc(containers, func(c any) bool { return c.(fields)["name"] == sidecar })
			if err := unstructured.SetNestedSlice(content, containers, pods...); err != nil {
				t.Fatal(err)
			}
		}
		encoded, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		clean[name] = encoded
	}
	return clean
}

// outage is a fate that all requests of one verb and resource have for a while.
type outage struct {
	verb, resource string
	fate           *fate
	// later is scenario.later, in whole minutes.
	later int

	began time.Time
	// minutes counts the requests in each minute since then.
	minutes []int
	lifted  bool
	// servers are the MCPServers as they were when it was over, and after is for how long something was written after that.
	servers []*unstructured.Unstructured
	after   time.Duration
}

const (
	// lasts is how long an outage lasts.
	lasts = 12 * time.Minute
	// soon is how long after the end of an outage something is still written that has to be: the longest back-off, and a rollout.
	soon = 11 * time.Minute
)

// begin starts the outage with the first request of its kind.
func (o *outage) begin(s *Simulation) {
	s.prompt = true
	s.meddle = func(_ int, r *apiserver.Request) *fate {
		a := s.askedFor(r)
		if a.verb != o.verb || a.resource != o.resource || o.fate.of != nil && !o.fate.of(a) {
			return nil
		}
		if o.began.IsZero() {
			o.began = time.Now()
		}
		o.end(s)
		if o.lifted {
			return nil
		}
		minute := int(time.Since(o.began) / time.Minute)
		for len(o.minutes) <= minute {
			o.minutes = append(o.minutes, 0)
		}
		o.minutes[minute]++
		return o.fate
	}
	s.resting = func() bool {
		o.end(s)
		o.after = s.wrote.Sub(o.began.Add(lasts))
		return !o.began.IsZero() && (!o.lifted || time.Since(o.began) < lasts+calm)
	}
}

// end ends the outage when its time is over.
func (o *outage) end(s *Simulation) {
	if o.lifted || o.began.IsZero() || time.Since(o.began) < lasts {
		return
	}
	o.lifted = true
	s.note("FAULT is over")
	for _, obj := range s.Server.List(s.Server.KindOf(toolhive, "MCPServer")) {
		o.servers = append(o.servers, obj.DeepCopyObject().(*unstructured.Unstructured))
	}
}

const (
	// firstMinute and anyMinute are how many requests there are at most while they are refused, for each object and minute: waits
	// begin with 200ms and double, and an object has two writers at most that ask for the same, with waits of their own.
	firstMinute, anyMinute = 20, 2
	// settles is how many minutes a change of the cluster takes at most if nothing is refused, with the wait for the next try.
	settles = 3
	// resent is how many there are at most, for all objects together, where client-go sends a request again by itself, after a second
	// each time: one that reads whose connection was reset.
	resent = 66
)

// most is how many requests there are at most in a minute of an outage in which so many objects are written.
func (o *outage) most(minute, objects int) int {
	switch {
	case o.fate.broken && !o.writes():
		return resent
	case minute == 0, o.later > 0 && minute >= o.later && minute < o.later+settles:
		// What is new is tried at once, whatever was refused before it.
		return firstMinute * objects
	}
	return anyMinute * objects
}

func (o *outage) writes() bool { return !slices.Contains([]string{"get", "list", "watch"}, o.verb) }

// stuck reports whether the outage kept something from being written until it was over.
func (o *outage) stuck() bool { return len(o.minutes) > o.later+settles }

// isTold reports whether the condition Applied of each MCPServer names an object of the resource that could not be read or written, or
// TakenOver does, where that keeps a takeover from beginning.
//
// There is nowhere to say it when the status itself is refused, or the edit by which it passes from ToolHive. That the finalizer of an MCPServer cannot be released is not said in
// a condition, nor is what keeps the configurations that MCPServers refer to from being written: MCPServers do not wait for that.
func (o *outage) isTold() bool {
	main, _, _ := strings.Cut(o.resource, "/")
	for _, u := range o.servers {
		if u.GetDeletionTimestamp() != nil || o.resource == "mcpservers/status" || o.verb == "patch" && o.resource == "mcpservers" || strings.HasPrefix(o.resource, "mcpoidcconfigs") || o.verb == "list" {
			continue
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		if !slices.ContainsFunc(conditions, func(c any) bool {
			of, _ := c.(fields)
			text, kind := asWritten.Replace(fmt.Sprint(of["message"])), strings.TrimSuffix(main, "s")
			applied := of["type"] == v1beta1.ConditionApplied && strings.HasPrefix(text, kind)
			begun := of["type"] == v1beta1.ConditionTakenOver && of["reason"] == v1beta1.ReasonCannotTakeOver && strings.Contains(text, ": "+kind)
			return of["status"] == "False" && (applied || begun)
		}) {
			return false
		}
	}
	return true
}

// TestOutages refuses all requests of one verb and resource for twelve minutes, with each answer of the table. Meanwhile they are as
// few as outage.most says, and a condition of the MCPServer names what is in the way. Afterwards it ends as it does without, within
// the longest back-off.
func TestOutages(t *testing.T) {
	var sum total
	sum.report(t)
	eachScenario(t, func(t *testing.T, sc scenario, reference outcome) {
		t.Helper()
		share := newPortion(t, 100)
		defer sum.add(share)
		turn, objects := int(fnvOf(t.Name())), map[[2]string]map[string]bool{}
		for _, a := range reference.asked {
			kind := [2]string{a.verb, a.resource}
			if objects[kind] == nil {
				objects[kind] = map[string]bool{}
			}
			objects[kind][a.text] = true
		}
		for _, kind := range slices.SortedFunc(maps.Keys(objects), func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) }) {
			turn++
			example := reference.asked[slices.IndexFunc(reference.asked, func(a asked) bool { return a.verb == kind[0] && a.resource == kind[1] })]
			for _, f := range possible(example, turn) {
				if f.passing || f.lies || !share.has() {
					continue
				}
				o := &outage{verb: kind[0], resource: kind[1], fate: f, later: int(sc.later / time.Minute)}
				end := playWith(t, sc, *seed, o.begin)
				o.judge(t, reference, end, len(objects[kind]))
			}
		}
	})
}

// judge holds an outage, and how it ended, against what is promised.
func (o *outage) judge(t *testing.T, reference, end outcome, objects int) {
	t.Helper()
	what := fmt.Sprintf("%s %s: %s", o.verb, o.resource, o.fate.name)
	compareWith(t, what, reference, end, o.fate)
	if o.after > soon {
		t.Errorf("%s: %s after it was over something was still written", what, o.after)
	}
	if o.fate.mutates {
		return // Nothing is refused.
	}
	for minute, n := range o.minutes {
		if most := o.most(minute, objects); n > most {
			t.Errorf("%s: %d requests in minute %d, want %d at most", what, n, minute, most)
		}
	}
	if o.stuck() && !o.isTold() {
		t.Errorf("%s: it was refused %v times a minute, and no condition says so: %s", what, o.minutes, conditionsOfServers(o.servers))
	}
}

func conditionsOfServers(servers []*unstructured.Unstructured) string {
	var all []any
	for _, u := range servers {
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		all = append(all, conditions)
	}
	return text(all)
}
