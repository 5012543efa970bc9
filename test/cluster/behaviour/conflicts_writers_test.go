// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/test/harness"
)

// otherWriter is somebody who writes to an object of an MCPServer, and what comes of it.
type otherWriter struct {
	// spec is what the MCPServer asks for.
	spec []harness.Change
	// component is the object that is written to.
	component harness.Component
	write     step
	// path is that of the field which it is about.
	path string
	// then is how things stand when the operator has seen it.
	then standings
	// class of the other side when the two disagree; empty when they do not. A disagreement costs one refused apply
	// and tells itself in one event.
	class managers.ManagerClass
	// whole is the path that settles it, of a field that Freehold removes because it sets an alternative; empty for path.
	whole string
	// fields is how many fields the two sides disagree about; 0 stands for one.
	fields int
	// end is how it ends, and lastly how things stand then.
	end    step
	lastly standings
}

// standings are how things stand with a field.
type standings struct {
	value wanted
	// owners of the field, in alphabetical order, as manager, operation and subresource.
	owners []string
	// count is what the operator has written to get there, but for the status; nil where that says itself: nothing, or
	// what a disagreement costs.
	count harness.WriteCount
	// news are the reasons of the events about it; of a disagreement it is not said.
	news []string
}

// contested tells whether the two sides disagree.
func (w *otherWriter) contested() bool { return w.class != "" }

// item is what is written of the field, as a WriteCount names it, and manager whose field it is.
func (w *otherWriter) item() (item, manager string) {
	form := harness.FormOf(w.component)
	if w.path == replicasPath {
		return string(w.component) + " replicas", form.Replicas
	}
	return string(w.component), form.Manager
}

// otherWriters are all of them, by the name of the MCPServer that they write to.
func otherWriters() map[string]otherWriter {
	all := map[string]otherWriter{}
	for _, some := range []map[string]otherWriter{kubectlCommands, kubectlAppliers, autoscalers, appliers} {
		maps.Copy(all, some)
	}
	return all
}

// TestWhatOthersWriteStays lets everybody write to the objects of MCPServers who does so in the clusters of this world.
// What they write is theirs: it stays, whether Freehold wants to have something else there or not. If it does, that is
// told, once, and then there is silence, until both want the same or one of them gives the field up.
func TestWhatOthersWriteStays(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := env.Namespace(t)
	process := ns.Operate(t)
	kubectl := ns.Kubectl(t)
	writers := otherWriters()
	// Those who take their time go first.
	env.Numbers.Add("other writers: cases of kubectl, autoscalers and other appliers", len(writers))
	names := slices.Concat(slices.Sorted(maps.Keys(autoscalers)), slices.Sorted(maps.Keys(kubectlCommands)),
		slices.Sorted(maps.Keys(kubectlAppliers)), slices.Sorted(maps.Keys(appliers)))
	for _, name := range names {
		ns.Create(t, harness.Server(name, v1beta1.TransportStreamableHTTP, writers[name].spec...))
	}
	scenes := map[string]*scene{}
	for _, name := range names {
		ns.AwaitSettled(t, name)
		scenes[name] = &scene{Namespace: ns, kubectl: kubectl, server: name, component: writers[name].component}
	}
	awaitSilence(t, ns)
	phase := func(title string, act func(t *testing.T, s *scene, w *otherWriter)) {
		if t.Failed() {
			return
		}
		t.Run(title, func(t *testing.T) {
			for _, name := range names {
				w := writers[name]
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					act(t, scenes[name], &w)
				})
			}
		})
	}

	beginning := ns.Mark(t)
	phase("write", begin)
	awaitSilence(t, ns)
	// What has lost the label by which it is found is read again after waits that grow.
	ns.Quiet(t, ns.Mark(t), harness.Standing, audit.Writes())
	phase("stand", func(t *testing.T, s *scene, w *otherWriter) { stand(t, s, w, beginning) })
	checkGauge(t, process, writers)

	end := ns.Mark(t)
	phase("end", func(t *testing.T, s *scene, w *otherWriter) {
		w.end(t, s)
		ns.AwaitNoConflict(t, s.server)
		ns.AwaitSettled(t, s.server)
		s.await(t, w.path, &w.lastly)
	})
	awaitSilence(t, ns)
	phase("peace", func(t *testing.T, s *scene, w *otherWriter) { peace(t, s, w, end) })
	checkGauge(t, process, nil)
	requests := len(ns.Writes(t, beginning))
	t.Logf("%d other writers, %d disagreements, %d writes of the operator in all", len(names), disagreements(writers), requests)
}

// settling is the path in the commands that settle a disagreement.
func (w *otherWriter) settling() string { return cmp.Or(w.whole, w.path) }

// begin lets the other one write.
func begin(t *testing.T, s *scene, w *otherWriter) {
	t.Helper()
	s.before = s.MustObject(t, s.component, s.server)
	w.write(t, s)
	s.await(t, w.path, &w.then)
	if w.contested() {
		server := fmt.Sprintf("kubectl annotate -n %s mcpserver.toolhive.stacklok.dev/%s --overwrite", s.Name, s.server)
		field, verb := fmt.Sprintf("%s:%s'", s.object(), w.settling()), "wants"
		if w.whole != "" {
			verb = "removes it"
		}
		more := ""
		if w.fields > 1 {
			more = fmt.Sprintf(" (+%d more fields)", w.fields-1)
		}
		_, manager := w.item()
		side := "an unknown client has set"
		if len(w.then.owners) > 0 {
			side = fmt.Sprintf("field manager %s owns", holder(w.then.owners[0]))
		}
		told := []string{
			fmt.Sprintf("%s %s of %s%s; %s %s", side, w.path, s.object(), more, manager, verb),
			fmt.Sprintf("Take ownership: %s '%s=%s.", server, v1beta1.AnnotationTake, field),
		}
		if request.YieldableBy(apply.ObjectRef{Kind: harness.FormOf(s.component).Kind}, w.path, w.whole != "") {
			told = append(told, fmt.Sprintf("Leave it: %s '%s=%s.", server, v1beta1.AnnotationYield, field))
		}
		s.AwaitConflict(t, s.server, told...)
	} else {
		s.AwaitSettled(t, s.server)
	}
}

// stand looks at what has come of it, some time later.
func stand(t *testing.T, s *scene, w *otherWriter, since audit.Mark) {
	t.Helper()
	count, news := w.then.count, w.then.news
	if w.contested() {
		count, news = harness.FormOf(w.component).Conflict(w.path), []string{"FieldManagerConflict"}
	} else {
		s.AwaitNoConflict(t, s.server)
	}
	s.await(t, w.path, &w.then)
	s.checkWrites(t, since, count)
	s.checkEvents(t, news)
}

// peace looks at how it has ended.
func peace(t *testing.T, s *scene, w *otherWriter, since audit.Mark) {
	t.Helper()
	count := w.lastly.count
	if count == nil && w.contested() {
		item, _ := w.item()
		count = harness.Once(item)
	}
	s.AwaitNoConflict(t, s.server)
	s.await(t, w.path, &w.lastly)
	s.checkWrites(t, since, count)
}

// statuses is how often the status of an MCPServer may be written for one cause. It tells how many pods are ready, and
// a rollout of three makes that change six times.
const statuses = 8

// CheckWrites holds what was written for the MCPServer against what should have been.
func (s *scene) checkWrites(t *testing.T, since audit.Mark, want harness.WriteCount) {
	t.Helper()
	count := harness.CountWrites(s.server, s.Writes(t, since))
	if !slices.ContainsFunc(slices.Collect(maps.Keys(want)), isRefused) {
		for component, lost := range count.Lost() {
			if others := s.WritesByOthers(t, since, component, s.server); lost > others {
				t.Errorf("%d writes of the %s were refused, and others wrote it %d times", lost, component, others)
			}
		}
	}
	if want == nil {
		want = harness.WriteCount{}
	}
	if diff := gocmp.Diff(want, count.Without("status")); diff != "" {
		t.Errorf("what was written is not what should have been (-want +got):\n%s", diff)
	}
	if n := count["status"]; n > statuses {
		t.Errorf("the status was written %d times:\n%s", n, harness.StatusWrites(s.server, s.Writes(t, since)))
	}
}

func isRefused(item string) bool { return strings.HasSuffix(item, "(409)") }

// checkEvents holds the events about the MCPServer against the reasons of those that should be there. Each is there
// once.
func (s *scene) checkEvents(t *testing.T, reasons []string) {
	t.Helper()
	var got, told []string
	harness.Eventually(t, fmt.Sprintf("there are events of %s", s.server), func(ctx context.Context) error {
		list, err := s.Core.EventsV1().Events(s.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		got, told = nil, nil
		for _, e := range list.Items {
			if e.Regarding.Kind != v1beta1.MCPServerKind || e.Regarding.Name != s.server {
				continue
			}
			got = append(got, e.Reason)
			told = append(told, e.Note)
			if e.Series != nil {
				got = append(got, fmt.Sprintf("%s, %d times", e.Reason, e.Series.Count))
			}
		}
		if len(got) < len(reasons) {
			return fmt.Errorf("they are %v", got)
		}
		return nil
	})
	slices.Sort(got)
	if diff := gocmp.Diff(reasons, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("other things were told than should have been (-want +got):\n%s\n%s", diff, strings.Join(told, "\n"))
	}
}

// checkGauge holds the gauge of conflicts against the disagreements that stand.
func checkGauge(t *testing.T, process *operator.Process, writers map[string]otherWriter) {
	t.Helper()
	const gauge = "freehold_field_conflicts"
	want := map[[3]string]float64{}
	for _, w := range writers {
		if w.contested() {
			_, manager := w.item()
			want[[3]string{manager, harness.FormOf(w.component).Kind.Kind, string(w.class)}] += float64(max(w.fields, 1))
		}
	}
	var total float64
	for labels, count := range want {
		total += count
		got, err := harness.Metric(t.Context(), process, gauge, fmt.Sprintf("writer=%q", labels[0]),
			fmt.Sprintf("kind=%q", labels[1]), fmt.Sprintf("manager_class=%q", labels[2]))
		if err != nil || got != count {
			t.Errorf("%s of %v is %v, and %v should be: %v", gauge, labels, got, count, err)
		}
	}
	if got, err := harness.Metric(t.Context(), process, gauge); err != nil || got != total {
		t.Errorf("%s is %v in all, and %v should be: %v", gauge, got, total, err)
	}
}

func disagreements(writers map[string]otherWriter) (count int) {
	for _, w := range writers {
		if w.contested() {
			count++
		}
	}
	return count
}
