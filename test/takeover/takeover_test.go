// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/mcpclient"
)

// takenAtOnce is how many MCPServers of the fleet are taken over at a time.
const takenAtOnce = 3

// byFreehold are flags of Freehold's operator.
func byFreehold(more ...string) []string {
	return append([]string{"--runner-image=" + images.ProxyRunner}, more...)
}

// TestTakeover lets ToolHive make the fleet, stops its operator, and lets Freehold take the fleet over, while clients
// call the MCPServers all the time.
func TestTakeover(t *testing.T) {
	t.Parallel()
	ns, elsewhere := env.Namespace(t), env.Namespace(t)
	p := upstream(t, ns)
	members := append(fleet(), newer(t)...)
	w := settle(t, ns, members)
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	w.checkUpstream(t, members)

	before := map[string]components{}
	for _, m := range members {
		before[m.server.Name] = w.components(t, m.server)
	}
	movements, calls := recordMovements(t, ns), w.callAll(t, members)
	mark := ns.Mark(t)
	ours := ns.Operator(t, byFreehold("--watch-namespaces="+ns.Name+","+elsewhere.Name, fmt.Sprintf("--takeovers-at-once=%d", takenAtOnce))...)
	t.Run("taken", func(t *testing.T) {
		for _, m := range members {
			t.Run(m.server.Name, func(t *testing.T) {
				t.Parallel()
				if m.uncovered {
					w.checkLeftAlone(t, m, before[m.server.Name])
					return
				}
				w.awaitTaken(t, m)
			})
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	calls.check(t, before)
	checkMetrics(t, ours)
	withoutNode(t, elsewhere)
	twins := &world{Namespace: elsewhere}
	for _, m := range members {
		if !m.uncovered {
			twins.createTwin(t, w, m)
		}
	}
	for _, m := range members {
		t.Run("afterwards/"+m.server.Name, func(t *testing.T) {
			if m.uncovered {
				w.checkLeftAlone(t, m, before[m.server.Name])
				return
			}
			taken := w.components(t, m.server)
			taken.checkToolHiveGone(t)
			taken.checkOthers(t, m, before[m.server.Name])
			taken.checkReplicas(t, before[m.server.Name])
			proxies, backends := before[m.server.Name].replicas(t, harness.Proxy), before[m.server.Name].replicas(t, harness.Backend)
			movements.of(t, w, m.server.Name).check(t, m.gate(), int(proxies), int(backends))
			if m.again != nil {
				m.again.do(t, twins, m.server.Name)
			}
			twins.AwaitSettled(t, m.server.Name)
			taken.checkTwin(t, m, twins.components(t, m.server))
		})
	}
	w.checkRunners(t, mark)
}

// checkMetrics checks that no takeover is under way any more.
func checkMetrics(t *testing.T, p *operator.Process) {
	t.Helper()
	for _, state := range []string{"active", "waiting"} {
		n, err := harness.Metric(t.Context(), p, "freehold_takeovers", `state="`+state+`"`)
		if err != nil || n != 0 {
			t.Errorf("%v takeovers are %s: %v", n, state, err)
		}
	}
	n, err := harness.Metric(t.Context(), p, "freehold_claim_changes_total", `cause="inherited"`)
	if err != nil || n == 0 {
		t.Errorf("no claim was inherited: %v", err)
	}
}

// awaitTaken waits until an MCPServer is taken over, and settles, as its condition says, what others contest.
func (w *world) awaitTaken(t *testing.T, m *member) {
	t.Helper()
	if len(m.contested) > 0 {
		// As long as the proxies are not replaced, the backend is left as it is.
		w.settleConflict(t, m, harness.Proxy, "Take ownership: ")
		w.settleConflict(t, m, harness.Backend, "Leave it: ")
	}
	w.AwaitServer(t, m.server.Name, "is taken over", isTaken)
	w.AwaitSettled(t, m.server.Name)
	w.awaitEvent(t, m.server.Name, corev1.EventTypeNormal, "taken over every object")
}

// settleConflict waits until it is told that a component is contested, and carries out the command that the condition tells
// as one way out of it.
func (w *world) settleConflict(t *testing.T, m *member, component harness.Component, way string) {
	t.Helper()
	var command string
	w.AwaitServer(t, m.server.Name, "is contested", func(server *v1beta1.MCPServer) error {
		owned := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsOwned)
		if owned == nil || owned.Status != metav1.ConditionFalse || !strings.Contains(neutralPath(owned.Message), m.contested[component]+" ") {
			return fmt.Errorf("its conditions are %+v", server.Status.Conditions)
		}
		_, after, found := strings.Cut(owned.Message, way)
		if !found || !strings.Contains(owned.Message, `"kubectl-`) {
			return fmt.Errorf("there is no %q, or nobody's name, in %s", way, owned.Message)
		}
		command, _, _ = strings.Cut(after, "'. ")
		return nil
	})
	w.kubectl.Shell(t, command+"'")
}

// checkLeftAlone checks that nothing of an MCPServer that Freehold does not cover was written, but for the one condition
// that tells why.
func (w *world) checkLeftAlone(t *testing.T, m *member, before components) {
	t.Helper()
	w.AwaitServer(t, m.server.Name, "is left alone", notTaken("CannotTakeOver"))
	for component, object := range w.components(t, m.server) {
		found := changes(before[component], object)
		if component == harness.ServerItself {
			found = slices.DeleteFunc(found, func(c change) bool { return c.path == ".status.conditions" })
			checkConditionsKept(t, before[component], object)
		} else if object.GetResourceVersion() != before[component].GetResourceVersion() && component != harness.Proxy && component != harness.Backend {
			t.Errorf("the %s was written", component)
		}
		for _, c := range found {
			t.Errorf("the %s has changed at %s", component, c)
		}
	}
	if steps := mcpclient.Call(t, w.Namespace, mcpclient.To(m.server)...); len(steps) == 0 || steps[0].Error == "" {
		t.Errorf("a client without a token is let in: %+v", steps)
	}
}

// checkConditionsKept checks that an MCPServer has all the conditions that it had, in the same words.
func checkConditionsKept(t *testing.T, before, after *unstructured.Unstructured) {
	t.Helper()
	of := func(object *unstructured.Unstructured) map[string]string {
		conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]string{}
		for _, item := range conditions {
			condition, _ := item.(map[string]any)
			texts[fmt.Sprint(condition["type"])] = text(condition)
		}
		delete(texts, v1beta1.ConditionTakenOver)
		return texts
	}
	if was, is := text(of(before)), text(of(after)); was != is {
		t.Errorf("the conditions were %s, and are %s", was, is)
	}
}

func (p components) replicas(t *testing.T, component harness.Component) int64 {
	t.Helper()
	replicas, found, err := unstructured.NestedInt64(p[component].Object, "spec", "replicas")
	if err != nil || !found {
		t.Fatalf("the %s has no replicas: %v", component, err)
	}
	return replicas
}

func (p components) checkReplicas(t *testing.T, before components) {
	t.Helper()
	for _, component := range []harness.Component{harness.Proxy, harness.Backend} {
		if was, is := before.replicas(t, component), p.replicas(t, component); was != is {
			t.Errorf("the %s had %d replicas and now has %d", component, was, is)
		}
	}
}

// createTwin makes an MCPServer of the same name and spec that ToolHive has never seen.
func (w *world) createTwin(t *testing.T, original *world, m *member) {
	t.Helper()
	objects, err := operator.Decode([]byte(m.before))
	if err != nil {
		t.Fatal(err)
	}
	if err := operator.Apply(t.Context(), w.Config, w.Name, objects); err != nil {
		t.Fatal(err)
	}
	live, err := original.Servers.Get(t.Context(), m.server.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Create(t, &v1beta1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: live.Name}, Spec: live.Spec})
}

// checkRunners checks that no proxyrunner has written anything since the mark, nor tried to. To attach to a pod changes
// nothing.
func (w *world) checkRunners(t *testing.T, since audit.Mark) {
	t.Helper()
	w.Mark(t) // What was answered before is in the log now.
	events, _, err := w.Audit.Since(since, audit.Namespace(w.Name), byRunners)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.IsWrite() && e.Subresource != "attach" {
			t.Errorf("a proxyrunner wrote: %v", e)
		}
	}
	t.Logf("%d requests of proxyrunners", len(events))
	if len(events) == 0 {
		t.Error("proxyrunners have asked for nothing at all")
	}
}

func byRunners(e *audit.Event) bool {
	return strings.HasPrefix(e.User, "system:serviceaccount:") && strings.HasSuffix(e.User, "-proxy-runner")
}
