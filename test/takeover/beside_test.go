// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/hack/toolhive"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/mcpclient"
)

const (
	// told is how long it may take until a user sees that ToolHive's operator is at work beside Freehold's.
	told = 20 * time.Second
	// peace is how long nobody may write anything, so that it counts as the end of a quarrel.
	peace = 30 * time.Second
	// quarrel is how long it may take until then.
	quarrel = 2 * time.Minute
	// quarrels are how many requests to write both may make about one MCPServer until then, refused ones too, and
	// ourQuarrels how many of them may be Freehold's. There are about 60 and 15. Most are ToolHive's own, which looks at an
	// MCPServer again after each change of its status, and repeats what was overtaken.
	quarrels, ourQuarrels = 150, 40
)

// TestBothOperators starts ToolHive's operator again where Freehold has taken over. The users are told so, the two do not
// fight, and when it is stopped they can put things right in the way that they are told.
func TestBothOperators(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := env.Namespace(t)
	p := upstream(t, ns)
	members := only(t, "plain", "edited-stdio", "numbers")
	w := settle(t, ns, members)
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	ours := ns.Operate(t, byFreehold()...)
	for _, m := range members {
		w.awaitTaken(t, m)
	}

	// A binding may be written in the moment in which ToolHive has given its Role more rights, and that is refused.
	env.Expect(t, harness.Forbidden, ns.Name)
	mark := ns.Mark(t)
	again, began := upstream(t, ns), time.Now()
	for _, m := range members {
		w.AwaitServer(t, m.server.Name, "tells of ToolHive", toldOf(managers.ToolHiveOperator))
		t.Logf("%s tells of ToolHive's operator after %v", m.server.Name, time.Since(began).Round(time.Millisecond))
		w.awaitEvent(t, m.server.Name, corev1.EventTypeWarning, managers.ToolHiveOperator)
	}
	if took := harness.AtPace(began, time.Since(began)); took > told {
		t.Errorf("it took %v until all told of ToolHive's operator", took)
	}
	checkGauge(t, ours, true)
	w.awaitPeace(t, mark, len(members))
	for _, m := range members {
		w.AwaitServer(t, m.server.Name, "still tells of ToolHive", toldOf(managers.ToolHiveOperator))
	}

	if err := again.Stop(); err != nil {
		t.Error(err)
	}
	w.checkListed(t, mark)
	for i, m := range members {
		if i == 0 {
			// Of the fields that are contested, and of the rest, the plugin finds the way out by itself.
			w.plugin(t, cmd.ExitDone, "take", "mcpserver/"+m.server.Name, "--yes", "--timeout=2m",
				"--operator-arg=--openshift=false", "--operator-arg=--runner-image="+images.ProxyRunner)
			continue
		}
		w.takeBack(t, m)
	}
	for _, m := range members {
		w.AwaitSettled(t, m.server.Name)
		w.AwaitServer(t, m.server.Name, "has no conflict", func(server *v1beta1.MCPServer) error {
			if meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionFieldsOwned) {
				return nil
			}
			return fmt.Errorf("its conditions are %+v", server.Status.Conditions)
		})
		w.components(t, m.server).checkToolHiveGone(t)
		mcpclient.Answers(t, ns, machine, m.server, 3)
	}
	checkGauge(t, ours, false)
}

// toldOf wants the condition to tell that a manager of ToolHive's holds fields.
func toldOf(manager string) func(server *v1beta1.MCPServer) error {
	return func(server *v1beta1.MCPServer) error {
		c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsOwned)
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, manager) {
			return fmt.Errorf("its conditions are %+v", server.Status.Conditions)
		}
		return nil
	}
}

// awaitEvent waits for an event of a type that has some words in it.
func (w *world) awaitEvent(t *testing.T, server, eventType, words string) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("an event about %s with %q", server, words), func(ctx context.Context) error {
		list, err := w.Core.EventsV1().Events(w.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if e := &list.Items[i]; e.Regarding.Name == server && e.Type == eventType && strings.Contains(e.Note, words) {
				return nil
			}
		}
		return errors.New("there is none")
	})
}

// checkGauge checks whether the operator counts conflicts with ToolHive.
func checkGauge(t *testing.T, p *operator.Process, some bool) {
	t.Helper()
	harness.Eventually(t, "the gauge of conflicts", func(ctx context.Context) error {
		n, err := harness.Metric(ctx, p, "freehold_field_conflicts", `manager_class="toolhive"`)
		if err == nil && n > 0 != some {
			err = fmt.Errorf("it is %v", n)
		}
		return err
	})
}

// byOperators are the writes of both operators, refused ones too. Leases and events are nobody's quarrel.
func (w *world) byOperators(e *audit.Event) bool {
	return e.Namespace == w.Name && e.IsWrite() && e.Resource != "events" && (e.User == toolHivesOperator || e.User == harness.OperatorUser)
}

const toolHivesOperator = "system:serviceaccount:" + toolhive.Namespace + ":" + toolhive.ServiceAccount

// checkListed holds what ToolHive's operator has written, of whatever release it is, against the table in docs/migration-details.md.
func (w *world) checkListed(t *testing.T, since audit.Mark) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "migration-details.md"))
	if err != nil {
		t.Fatal(err)
	}
	const title = "what ToolHive's operator writes -->"
	_, after, _ := strings.Cut(string(page), "<!-- BEGIN "+title)
	table, _, _ := strings.Cut(after, "<!-- END "+title)
	listed := map[string]bool{}
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 2 {
			continue
		}
		for word := range strings.FieldsSeq(cells[1]) {
			listed[strings.ToLower(strings.TrimSuffix(word, "s"))+"s"] = true
		}
	}
	if !listed["deployments"] {
		t.Fatalf("docs/migration-details.md has no table of it: %s", table)
	}
	events, _, err := w.Audit.Since(since, audit.Writes(), audit.Namespace(w.Name))
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]int{}
	for _, e := range events {
		if e.User == toolHivesOperator && e.Code < http.StatusBadRequest && e.Resource != "events" && e.Resource != "leases" {
			written[e.Resource]++
		}
	}
	for resource, n := range written {
		if !listed[resource] {
			t.Errorf("ToolHive's operator has written %d times to %s, which docs/migration-details.md does not list", n, resource)
		}
	}
	if written["deployments"] == 0 {
		t.Errorf("ToolHive's operator has written %v, no Deployment among it", written)
	}
}

// awaitPeace waits until neither operator has written anything for a while, and counts what they wrote until then.
func (w *world) awaitPeace(t *testing.T, since audit.Mark, servers int) {
	t.Helper()
	ctx, cancel := harness.WithinPace(t.Context(), quarrel)
	defer cancel()
	var events []*audit.Event
	for mark := since; ; {
		calm, end := context.WithTimeout(ctx, peace)
		found, next, err := w.Audit.WaitFor(calm, mark, func(e []*audit.Event) bool { return len(e) > 0 }, w.byOperators)
		end()
		events = append(events, found...)
		if ctx.Err() != nil {
			t.Errorf("the operators still write after %v", quarrel)
			break
		}
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		mark = next
	}
	count, byUs, forbidden := map[string]int{}, 0, 0
	for _, e := range events {
		who := "ToolHive"
		if e.User == harness.OperatorUser {
			who = "Freehold"
			byUs++
			if e.Code == http.StatusForbidden {
				forbidden++
			}
		}
		count[fmt.Sprintf("%s: %s %s/%s %d", who, e.Verb, e.Resource, e.Subresource, e.Code)]++
	}
	for _, what := range slices.Backward(sortedKeys(count)) {
		t.Logf("%s: %d", what, count[what])
	}
	if len(events) > 0 {
		t.Logf("they wrote for %v", events[len(events)-1].Received.Sub(events[0].Received).Round(time.Second))
	}
	t.Logf("%d writes until nobody wrote for %v", len(events), peace)
	if forbidden > servers {
		t.Errorf("Freehold was refused %d requests that it has no right to", forbidden)
	}
	if len(events) > quarrels*servers || byUs > ourQuarrels*servers {
		t.Errorf("there were %d requests to write about %d MCPServers, %d of them Freehold's", len(events), servers, byUs)
	}
}

// takeBack carries out what the condition tells to do when ToolHive has written to what Freehold had taken over.
func (w *world) takeBack(t *testing.T, m *member) {
	t.Helper()
	server := w.AwaitServer(t, m.server.Name, "tells a way out", toldOf(managers.ToolHiveOperator))
	message := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsOwned).Message
	_, after, found := strings.Cut(message, "then take ownership: ")
	if !found {
		t.Fatalf("there is no command in: %s", message)
	}
	command, _, _ := strings.Cut(after, "'.")
	t.Log(command + "'")
	w.kubectl.Shell(t, command+"'")
}
