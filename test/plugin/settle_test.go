// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/test/harness"
)

// known are arguments that stand for what the operator of the suites is set up with: it has no Deployment.
const known = "--operator-arg=--openshift=false"

const imagePath = `.spec.template.spec.containers[name="toolhive"].image`

// contest changes fields of the operator's as an autoscaler, a human and Argo CD do.
func (s *scene) contest(t *testing.T) {
	t.Helper()
	s.patch(t, "deployments", "scale", scaler, map[string]any{"spec": map[string]any{"replicas": 3}})
	s.kubectl.Run(t, "set", "image", "deployment/"+web, "toolhive=example.com/proxy:mine")
	s.MustApply(t, argo, harness.BackendService, web, true, map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "theirs"}},
	})
	// The operator tells of all three: as many as the plugin finds.
	s.AwaitServer(t, web, "tells of three conflicts", func(server *v1beta1.MCPServer) error {
		c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsOwned)
		if c == nil || c.Status != metav1.ConditionFalse || !strings.HasSuffix(c.Message, "(+2 more)") {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
}

func withReplicas() []harness.Change {
	return []harness.Change{harness.Replicas(1, 1), func(s *v1beta1.MCPServer) {
		s.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: v1beta1.SessionStorageRedis, Address: "redis:6379"}
	}}
}

// TestSettle goes the way of a user from a conflict to its end, and compares all that is printed.
func TestSettle(t *testing.T) {
	s := newScene(t, withReplicas()...)
	step := func(name string, code int, c call) {
		t.Helper()
		c.args = append(c.args, known)
		got := do(t, s.Namespace, c)
		if got.code != code {
			t.Fatalf("%s ended with %d, want %d\n%s%s", name, got.code, code, got.out, got.errOut)
		}
		golden(t, s.Namespace, name, fmt.Sprintf("$ kubectl freehold %s\n%s%s[exit code %d]\n", strings.Join(c.args, " "), got.out, got.errOut, got.code))
	}
	step("conflicts-none", cmd.ExitDone, call{args: []string{"conflicts"}})
	mark := s.Mark(t)
	s.contest(t)
	step("conflicts", cmd.ExitFound, call{args: []string{"conflicts", "mcpserver/web"}})
	step("conflicts-wide", cmd.ExitFound, call{args: []string{"conflicts", "-o", "wide"}})
	step("conflicts-yaml", cmd.ExitFound, call{args: []string{"conflicts", "web", "-o", "yaml"}})

	step("take-nobody-to-ask", cmd.ExitDeclined, call{args: []string{"take", "mcpserver/web"}})
	step("take-declined", cmd.ExitDeclined, call{args: []string{"take", "mcpserver/web"}, input: "n\n"})
	step("take-dry-run-client", cmd.ExitDone, call{args: []string{"take", "web", "--dry-run=client"}})
	step("take-dry-run-server", cmd.ExitDone, call{args: []string{"take", "web", "--dry-run=server"}, terminal: true})
	step("take-no-such-field", cmd.ExitFailed, call{args: []string{"take", "web", ".spec.paused"}})
	if server := s.server(t); len(server.Annotations) != 0 {
		t.Fatalf("something was written: %v", server.Annotations)
	}
	step("take-field", cmd.ExitDone, call{args: []string{"take", "web", "deployment.apps/web:" + imagePath}, input: "y\n"})
	step("take-manager", cmd.ExitDone, call{args: []string{"take", "mcpserver/web", argo, "--yes"}})

	step("yield-all", cmd.ExitDone, call{args: []string{"yield", "mcpserver/web", "--yes"}})
	step("yield-none", cmd.ExitDone, call{args: []string{"yield", "mcpserver/web", "--yes"}})
	step("release-backend-replicas", cmd.ExitDone, call{args: []string{"release", "mcpserver/web", "backend-replicas", "--yes"}})
	step("release-again", cmd.ExitDone, call{args: []string{"release", "mcpserver/web", "backend-replicas", "--yes"}})
	step("release-not-owned", cmd.ExitFailed, call{args: []string{"release", "web", "service/mcp-web:.spec.clusterIP", "--yes"}})
	step("release-not-yieldable", cmd.ExitFailed, call{args: []string{"release", "web", "deployment.apps/web:.spec.selector", "--yes"}})
	if owners := ownership.Owners(s.MustObject(t, harness.Backend, web), ".spec.replicas"); len(owners) > 0 {
		t.Errorf("the backend's replicas are not released: %v", owners)
	}
	step("release-undo", cmd.ExitDone, call{args: []string{"release", "web", "backend-replicas", "--undo", "--yes"}})
	step("yield-undo", cmd.ExitDone, call{args: []string{"yield", "web", "--undo", "--yes"}})
	step("yield-undo-nothing", cmd.ExitDone, call{args: []string{"yield", "web", "--undo", "--yes"}})
	step("take-all", cmd.ExitDone, call{args: []string{"take", "web", "--yes"}})

	// The same fields, contested again: the same request has to be made anew.
	s.patch(t, "deployments", "scale", scaler, map[string]any{"spec": map[string]any{"replicas": 4}})
	s.contested(t)
	step("take-again", cmd.ExitDone, call{args: []string{"take", "web", "--yes"}})
	s.settled(t)
	s.checkRequests(t, mark)
}

func (s *scene) server(t *testing.T) *v1beta1.MCPServer {
	t.Helper()
	server, err := s.Servers.Get(t.Context(), web, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// checkRequests holds all writes of the plugin against what it promises: server-side applies to MCPServers, never
// forced, bound to the object that was seen, and nothing owned but the two annotations.
func (s *scene) checkRequests(t *testing.T, since audit.Mark) {
	t.Helper()
	s.Mark(t)
	events, _, err := s.Audit.Since(since, audit.Writes(), audit.Namespace(s.Name), func(e *audit.Event) bool {
		return strings.HasPrefix(e.UserAgent, "kubectl-freehold/")
	})
	if err != nil {
		t.Fatal(err)
	}
	wrote := 0
	for _, e := range events {
		var body struct{ Metadata metav1.ObjectMeta }
		if err := json.Unmarshal(e.Body, &body); err != nil {
			t.Fatal(err)
		}
		if e.Verb != "patch" || e.Resource != "mcpservers" || e.FieldManager != managers.Plugin || e.Force != nil ||
			body.Metadata.UID == "" || body.Metadata.ResourceVersion == "" {
			t.Errorf("the plugin has sent %v\n%s", e, e.Body)
		}
		if !e.DryRun {
			wrote++
		}
	}
	if wrote < 7 {
		t.Errorf("%d writes of the plugin were seen", wrote)
	}
	set, err := ownership.Fields(ownership.ApplyEntry(s.server(t), managers.Plugin, ""))
	if err != nil {
		t.Fatal(err)
	}
	if outside := managers.PluginWriter().Claim.Outside(set); set.Empty() || len(outside) > 0 {
		t.Errorf("the plugin owns %v, and %v is not its own", set, outside)
	}
}

func TestSomebodyElsesAnnotationIsNotTakenByForce(t *testing.T) {
	s := newScene(t, withReplicas()...)
	s.kubectl.Run(t, "annotate", "mcpserver", web, "freehold.dev/yield=.spec.sessionAffinity", "freehold.dev/take=nobody")
	s.contest(t)
	for _, args := range [][]string{
		{"yield", "web", "--yes"}, {"take", "web", "--yes"}, {"yield", "web", "--undo", "--yes"}, {"release", "web", "backend-replicas", "--yes"},
	} {
		got := must(t, s.Namespace, cmd.ExitFailed, append(args, known)...)
		if !strings.Contains(got.errOut, `held by field manager "kubectl-annotate"`) ||
			!strings.Contains(got.errOut, " mcpserver.toolhive.stacklok.dev/web freehold.dev/") {
			t.Errorf("%v: %s", args, got.errOut)
		}
	}
	line := got(t, must(t, s.Namespace, cmd.ExitFailed, "take", "web", "--yes", known).errOut, "kubectl annotate ")
	s.kubectl.Shell(t, line)
	must(t, s.Namespace, cmd.ExitDone, "take", "web", "--yes", known)
	if server := s.server(t); server.Annotations[v1beta1.AnnotationYield] != ".spec.sessionAffinity" {
		t.Errorf("the other annotation is %q", server.Annotations[v1beta1.AnnotationYield])
	}
}

// got returns a text from where something in it begins.
func got(t *testing.T, text, from string) string {
	t.Helper()
	i := strings.Index(text, from)
	if i < 0 {
		t.Fatalf("%q is not in %q", from, text)
	}
	return strings.TrimSpace(text[i:])
}

func TestWithoutAnOperatorThereIsNoAnswer(t *testing.T) {
	s := newScene(t)
	s.contestOne(t)
	s.stop(t)
	got := must(t, s.Namespace, cmd.ExitTimeout, "take", "web", "--yes", "--timeout=500ms", known)
	if !strings.Contains(got.errOut, "has not answered within 500ms") {
		t.Errorf("it says %s", got.errOut)
	}
	must(t, s.Namespace, cmd.ExitDone, "take", "web", "--yes", "--wait=false", known)
}

// A request that was carried out is made again while no operator runs. The next one carries it out.
func TestATakeThatIsAskedForAgainWaitsForAnOperator(t *testing.T) {
	s := newScene(t)
	s.contestOne(t)
	must(t, s.Namespace, cmd.ExitDone, "take", "web", "--yes", known)
	s.settled(t)
	s.contestOne(t)
	s.stop(t)
	before := s.server(t).Annotations[v1beta1.AnnotationTake]
	got := must(t, s.Namespace, cmd.ExitTimeout, "take", "web", "--yes", "--timeout=500ms", known)
	if now := s.server(t).Annotations[v1beta1.AnnotationTake]; now == "" || now == before || !strings.Contains(got.errOut, "written, but") {
		t.Errorf("the request %q is now %q, and it says %s", before, now, got.errOut)
	}
	must(t, s.Namespace, cmd.ExitDone, "take", "web", "--yes", "--wait=false", known)
	s.operator = s.Operate(t)
	s.settled(t)
}

// What cannot be left to others is not offered to be left, and yield says so, also where another field of the same object could be.
func TestWhatCannotBeYieldedIsNotOffered(t *testing.T) {
	s := newScene(t)
	refused := func() {
		t.Helper()
		got := must(t, s.Namespace, cmd.ExitFound, "conflicts", "web", known)
		if strings.Contains(got.out, "Leave") {
			t.Errorf("conflicts offers to leave it:\n%s", got.out)
		}
		got = must(t, s.Namespace, cmd.ExitFailed, "yield", "web", "--yes", known)
		if got.out != "" || !strings.Contains(got.errOut, ".serviceAccountName of deployment.apps/web cannot be left to others") || !strings.Contains(got.errOut, "kubectl freehold take ") {
			t.Errorf("yield says %s%s", got.out, got.errOut)
		}
		if annotations := s.server(t).Annotations; len(annotations) > 0 {
			t.Errorf("something was written: %v", annotations)
		}
	}
	s.kubectl.Run(t, "set", "serviceaccount", "deployment/"+web, "default")
	s.contested(t)
	refused()
	s.kubectl.Run(t, "set", "image", "deployment/"+web, "toolhive=example.com/proxy:mine")
	refused()
}

func (s *scene) contestOne(t *testing.T) {
	t.Helper()
	s.kubectl.Run(t, "set", "image", "deployment/"+web, "toolhive=example.com/proxy:mine")
	s.contested(t)
}

// TestConflictsAgree compares what the plugin works out with the conflicts that the operator meets, writer by writer.
func TestConflictsAgree(t *testing.T) {
	s := newScene(t, withReplicas()...)
	s.contest(t)
	var answer printers.Conflicts
	if err := json.Unmarshal([]byte(must(t, s.Namespace, cmd.ExitFound, "conflicts", "-o", "json", known).out), &answer); err != nil {
		t.Fatal(err)
	}
	worked := map[string]float64{}
	for _, f := range answer.Servers[0].Fields {
		worked[f.Writer]++
	}
	met := map[string]float64{}
	for _, w := range managers.Registry().Writers() {
		n, err := harness.Metric(t.Context(), s.operator, "freehold_field_conflicts", fmt.Sprintf("writer=%q", w.Name))
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			met[w.Name] = n
		}
	}
	if diff := gocmp.Diff(met, worked); diff != "" || len(met) != 3 {
		t.Errorf("conflicts (-the operator's +the plugin's):\n%s", diff)
	}
}

// The operator's arguments have a part in what it wants.
func TestTheArgumentsOfTheOperatorCount(t *testing.T) {
	s := newScene(t)
	s.contestOne(t)
	coloured := must(t, s.Namespace, cmd.ExitFound, "conflicts", known, "--color=always").out
	golden(t, s.Namespace, "conflict-coloured", strings.ReplaceAll(coloured, " "+known, "")) // A picture of what most users see.
	labels := map[string]string{"app": "operator"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "freehold"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "freehold", Image: "freehold", Args: []string{"--runner-image=example.com/runner:2", "--openshift=false"}},
	}
	if _, err := s.Core.AppsV1().Deployments(s.Name).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want string
		says string
	}{
		"of the Deployment": {[]string{"--operator=" + s.Name + "/freehold"}, "example.com/runner:2", ""},
		"of the user":       {[]string{"--operator=" + s.Name + "/freehold", "--operator-arg=--runner-image=example.com/runner:3"}, "example.com/runner:3", ""},
		"of the only one":   {[]string{known}, "example.com/runner:2", "the settings of the operator " + s.Name + "/freehold count for all MCPServers"},
	} {
		t.Run(name, func(t *testing.T) {
			got := must(t, s.Namespace, cmd.ExitFound, append([]string{"conflicts", "-o", "wide"}, test.args...)...)
			if !strings.Contains(got.out, test.want+"   freehold-proxy") || !strings.Contains(got.errOut, test.says) || test.says == "" && got.errOut != "" {
				t.Errorf("want %s\n%s%s", test.want, got.out, got.errOut)
			}
		})
	}
	if err := s.Core.AppsV1().Deployments(s.Name).Delete(t.Context(), deployment.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := must(t, s.Namespace, cmd.ExitFound, "conflicts"); !strings.Contains(got.errOut, "what deploy/install.yaml sets is assumed, such as the proxyrunner "+render.DefaultRunnerImage+" (see") {
		t.Errorf("it does not say that it assumes something: %s", got.errOut)
	}
	if got := must(t, s.Namespace, cmd.ExitFailed, "conflicts", "--operator=freehold"); !strings.Contains(got.errOut, "NAMESPACE/NAME") {
		t.Errorf("it says %s", got.errOut)
	}
}

// An MCPServer that cannot be rendered has no conflicts, and that is said.
func TestAnInvalidMCPServerHasNoConflicts(t *testing.T) {
	s := newScene(t)
	s.Edit(t, web, harness.PodTemplate(`{"spec":{"containers":[{"name":"mcp","ports":"none"}]}}`))
	got := must(t, s.Namespace, cmd.ExitDone, "conflicts", known)
	if !strings.Contains(got.errOut, "nothing is written for MCPServer web") {
		t.Errorf("it says %s", got.errOut)
	}
}
