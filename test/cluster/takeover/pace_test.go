// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// takenAtOnce is how many MCPServers of a namespace are to be taken over at a time.
const takenAtOnce = 2

// TestTakeoverPace takes over many MCPServers of two namespaces, and few of each at a time. Those that wait for a human
// let others pass.
func TestTakeoverPace(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	const kubectlSet = "kubectl-set"
	large, small := newInstallation(t), newInstallation(t)
	of := map[*installation][]string{large: names("paced", 12), small: names("small", 6)}
	for s, all := range of {
		half := len(all) / 2
		s.install(t, "edited", all[:half]...)
		s.install(t, "plain", all[half:]...)
	}
	// ToolHive's template stays in these, and so does all that waits for its pods to go.
	held := of[large][:takenAtOnce]
	for _, name := range held {
		large.MustPatch(t, kubectlSet, harness.Proxy, name, harness.Replace("/spec/template/spec/containers/0/image", "example.com/by-hand:1"))
		large.awaitRolledOut(t, name)
	}
	mark := large.Mark(t)
	p := env.Operator(t, harness.Watching(large.Name+","+small.Name), fmt.Sprint("--takeovers-at-once=", takenAtOnce))
	highest := awaitTakeovers(t, p, of, held)
	// Those that are held up count while they are looked at again.
	if highest.active > float64(2*takenAtOnce+len(held)) || highest.active < takenAtOnce || highest.waiting == 0 {
		t.Errorf("the metric told of %v at a time, and of %v that waited", highest.active, highest.waiting)
	}
	for s, all := range of {
		s.AwaitRest(t)
		s.checkPace(t, mark, all)
	}
	for _, name := range held {
		large.AwaitConflict(t, name, kubectlSet)
		server := large.AwaitServer(t, name, "is there", func(*v1beta1.MCPServer) error { return nil })
		condition := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionTakenOver)
		if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != "TakingOver" {
			t.Errorf("%s waits, and tells %+v", name, condition)
		}
		large.Edit(t, name, func(server *v1beta1.MCPServer) {
			server.Annotations = map[string]string{v1beta1.AnnotationTake: kubectlSet}
		})
	}
	for _, name := range held {
		large.awaitTakenOver(t, name)
	}
	large.AwaitRest(t)
	large.checkPace(t, mark, of[large])
	checkMetric(t, p)
}

func names(prefix string, count int) []string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf("%s-%02d", prefix, i))
	}
	return all
}

// takeovers are how many MCPServers are being taken over, and how many wait for their turn.
type takeovers struct{ active, waiting float64 }

func readTakeovers(ctx context.Context, p *operator.Process) (now takeovers, err error) {
	if now.active, err = harness.Metric(ctx, p, "freehold_takeovers", `state="active"`); err != nil {
		return now, err
	}
	now.waiting, err = harness.Metric(ctx, p, "freehold_takeovers", `state="waiting"`)
	return now, err
}

// awaitTakeovers waits until all MCPServers are taken over but those that are held up, and returns the highest numbers
// that the operator's metric had.
func awaitTakeovers(t *testing.T, p *operator.Process, of map[*installation][]string, held []string) (highest takeovers) {
	t.Helper()
	harness.Eventually(t, "all but some are taken over", func(ctx context.Context) error {
		now, err := readTakeovers(ctx, p)
		if err != nil {
			return err
		}
		highest = takeovers{max(highest.active, now.active), max(highest.waiting, now.waiting)}
		for s := range of {
			list, err := s.Servers.List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range list.Items {
				server := &list.Items[i]
				if err := harness.TakenOver(server); err != nil && !slices.Contains(held, server.Name) {
					return fmt.Errorf("MCPServer %s: %w", server.Name, err)
				}
			}
		}
		return nil
	})
	return highest
}

// checkMetric sees that nothing is being taken over any more.
func checkMetric(t *testing.T, p *operator.Process) {
	t.Helper()
	harness.Eventually(t, "the metric is at rest", func(ctx context.Context) error {
		if now, err := readTakeovers(ctx, p); err != nil || now != (takeovers{}) {
			return fmt.Errorf("it tells of %+v: %w", now, err)
		}
		return nil
	})
}

// checkPace reads from the audit log when each takeover began, with the first edit of managedFields, and when it ended, with
// the last write before the status that tells so, which may come some time after it. One that waits for a human ends with the
// write that was refused, and goes on later.
func (s *installation) checkPace(t *testing.T, since audit.Mark, all []string) {
	t.Helper()
	type step struct {
		at   time.Time
		more int
		name string
	}
	var steps []step
	writes := s.Writes(t, since)
	for _, name := range all {
		var began, last, ended time.Time
		refused := false
		for _, e := range writes {
			item := soleItem(name, e)
			switch {
			case item == "":
			case began.IsZero() && e.FieldManager == managers.Ownership:
				began = e.Received
			case e.Code == http.StatusConflict && item == string(harness.Proxy)+" (409)":
				refused = true
			case ended.IsZero() && item == "status" && (refused || tellsTakenOver(t, e)):
				ended = last
			}
			if item != "" && item != "status" {
				last = e.Received
			}
		}
		if began.IsZero() || !ended.After(began) {
			t.Errorf("%s was taken over from %v to %v", name, began, ended)
		}
		steps = append(steps, step{began, 1, name}, step{ended, -1, name})
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(a.at.Compare(b.at), a.more-b.more) })
	active, most := 0, 0
	for _, next := range steps {
		active += next.more
		most = max(most, active)
	}
	if most != takenAtOnce {
		t.Errorf("of %d MCPServers up to %d were taken over at a time, not %d: %v", len(all), most, takenAtOnce, steps)
	}
}

// soleItem is what an operator wrote of an MCPServer, but for events.
func soleItem(server string, e *audit.Event) string {
	for item := range harness.CountWrites(server, []*audit.Event{e}) {
		if item != "event" {
			return item
		}
	}
	return ""
}

// tellsTakenOver tells whether a write of a status says that the takeover is done.
func tellsTakenOver(t *testing.T, e *audit.Event) bool {
	t.Helper()
	var body struct {
		Status struct{ Conditions []metav1.Condition }
	}
	if strings.HasPrefix(string(e.Body), "[") {
		return false // an edit of managedFields
	}
	if err := json.Unmarshal(e.Body, &body); err != nil {
		t.Fatal(err)
	}
	return meta.IsStatusConditionTrue(body.Status.Conditions, v1beta1.ConditionTakenOver)
}
