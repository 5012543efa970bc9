// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/health"
)

// screen is how wide the terminal of these tests is, in characters.
const screen = 80

var morning = time.Date(2026, 6, 1, 6, 0, 0, 0, time.UTC)

func healthy() *health.Status {
	renewed := morning.Add(-3 * time.Second)
	return &health.Status{
		Plugin: "v0.1.0",
		Operator: health.Operator{
			Object: "deployment.apps/freehold", Namespace: "freehold-system", Image: "ghcr.io/freehold-dev/freehold:v0.1.0", Version: "v0.1.0",
			Replicas: 2, Available: 2, Leader: "freehold-6d4b75cb6d-hqlx9_0c4f6c0e-5d3f-4a57-9a9e-1c5f5f6d7e8f", Renewed: &renewed,
		},
		Servers: 312, States: map[string]int{"Ready": 300, "ScaledToZero": 10, "RollingOut": 2},
	}
}

func shown(t *testing.T, s *health.Status, wide bool) string {
	t.Helper()
	var out bytes.Buffer
	if err := (Status{Status: s, Width: screen}).Print(&out, Palette{}, morning, wide); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTheStatusOfAHealthyInstallationIsOneTable(t *testing.T) {
	want := `Operator        v0.1.0, 2 of 2 replicas available in namespace freehold-system
Plugin          v0.1.0
Leader          freehold-6d4b75cb6d-hqlx9, renewed 3s ago
Looked at       all namespaces
MCPServers      312  300 Ready  10 ScaledToZero  2 RollingOut
Conflicts       none
Stuck rollouts  none
Refused         none
Takeovers       none
`
	if diff := cmp.Diff(want, shown(t, healthy(), false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// However much is wrong, and whatever things are called, it is one screen. Wide shows everything.
func TestStatusFitsOnAScreen(t *testing.T) {
	s := healthy()
	s.States = map[string]int{"Ready": 10000, "Stopped": 10000, "Pending": 10000, "Failed": 10000, "Terminating": 10000, "Unknown": 10000}
	s.Servers, s.Deleting = 70000, 10000
	var problems []health.Problem
	for i := range 500 {
		problems = append(problems, health.Problem{
			Namespace: "a-namespace-with-quite-a-long-name", Object: fmt.Sprintf("mcpserver/server-%03d", i), Reason: "FieldManagerConflict",
			Message: strings.Repeat("a long message ", 20) + "\x1b[2J\n", Since: morning.Add(-time.Hour),
		})
	}
	s.Conflicts, s.StuckRollouts, s.Refused = problems, problems, problems
	s.Operator.Scope = cluster.Scope{Selector: "a-domain.example.com/with-a-label=and-a-value-of-it", Namespaces: []string{"a-namespace-with-quite-a-long-name"}}
	s.Takeovers = health.Takeovers{UnderWay: 1000, Waiting: 1000, Approval: 1000, HeldUp: problems}
	lines := strings.Split(strings.TrimSuffix(shown(t, s, false), "\n"), "\n")
	if len(lines) > 24 {
		t.Errorf("it has %d lines", len(lines))
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > screen || strings.Contains(line, "\x1b") {
			t.Errorf("it has a line of %d characters: %q", n, line)
		}
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{"and 498 more: kubectl freehold conflicts -A", "500 held up, 1000 under way, 1000 waiting, 1000 to be approved", "10000 being deleted"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "server-002") {
		t.Errorf("it lists too many:\n%s", text)
	}
	if wide := shown(t, s, true); strings.Count(wide, "server-") != 2000 || strings.Contains(wide, " more: ") || !strings.Contains(wide, `long message \x1b[2J`) {
		t.Error("wide does not show everything")
	}
}

// A line that does not fit ends before a command, or in front of the words that lead to it: half a command is none.
func TestStatusCutsNoCommand(t *testing.T) {
	const command = "kubectl freehold take -n shop mcpserver/web --context=staging"
	for name, test := range map[string]struct{ message, want string }{
		"a command that does not fit": {"helm owns .spec.replicas. Take ownership: " + command, "helm owns .spec.replicas. Take ownership…"},
		"one that does":               {"kubectl get -n shop pods", "kubectl get -n shop pods"},
		"one that may be whole":       {"Try kubectl get -n shop pods, and " + strings.Repeat("more ", 20), "Try…"},
		"a field manager":             {"field manager kubectl owns .spec.replicas; " + strings.Repeat("more ", 20), "field manager kubectl owns .spec.replica…"},
		"one that follows":            {strings.Repeat("more ", 20) + command, "more more more more more more more more …"},
	} {
		s := healthy()
		s.Conflicts = []health.Problem{{Namespace: "shop", Object: "mcpserver/web", Reason: "FieldManagerConflict", Message: test.message, Since: morning.Add(-time.Hour)}}
		if text := shown(t, s, false); !strings.Contains(text, "  shop/web  FieldManagerConflict, 60m: "+test.want+"\n") {
			t.Errorf("%s: it does not say %q:\n%s", name, test.want, text)
		}
	}
}

// What goes into a pipe or a file is whole.
func TestStatusCutsNothingWithoutATerminal(t *testing.T) {
	s := healthy()
	long := strings.Repeat("a long message ", 20)
	s.Unobserved = []health.Problem{{Namespace: "shop", Object: "mcpserver/web", Reason: "Unobserved", Message: long, Since: morning.Add(-time.Hour)}}
	var out bytes.Buffer
	if err := (Status{Status: s}).Print(&out, Palette{}, morning, false); err != nil || !strings.Contains(out.String(), "Unobserved      1\n  shop/web  Unobserved, 60m: "+long+"\n") {
		t.Errorf("error %v:\n%s", err, &out)
	}
}

// The command that shows the rest has the options of the user, and is not there where it does not fit.
func TestStatusNamesNoHalfCommand(t *testing.T) {
	s := healthy()
	for range 5 {
		s.Conflicts = append(s.Conflicts, health.Problem{Namespace: "shop", Object: "mcpserver/web", Since: morning})
	}
	for context, want := range map[string]string{
		"":                       "and 3 more: kubectl freehold conflicts -A\n",
		"a b":                    "and 3 more: kubectl freehold conflicts -A '--context=a b'\n",
		strings.Repeat("x", 200): "and 3 more; -o wide shows them\n",
	} {
		var out bytes.Buffer
		status := Status{Status: s, Width: screen}
		if context != "" {
			status.Caller.Target = []string{"--context=" + context}
		}
		if err := status.Print(&out, Palette{}, morning, false); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q, error %v:\n%s", want, err, &out)
		}
	}
}

func TestTheStatusNamesEachProblem(t *testing.T) {
	s := healthy()
	s.Namespace = "shop"
	s.Operator = health.Operator{Namespace: "freehold-system", Problem: "deployment.apps/freehold in namespace freehold-system: there is no operator"}
	s.Conflicts = []health.Problem{
		{Namespace: "shop", Object: "mcpserver/web", Reason: "FieldManagerConflict", Message: "helm", Since: morning.Add(-5 * time.Minute)},
		{Namespace: "shop", Object: "mcpoidcconfig.toolhive.stacklok.dev/corp", Reason: "FieldManagerConflict", Message: "jane", Since: morning.Add(-time.Hour)},
	}
	s.NotChecked = []string{"the operator: needs the right to be king"}
	text := shown(t, s, true)
	for _, want := range []string{
		"Problem         deployment.apps/freehold in namespace freehold-system: there is no operator\n",
		"Looked at       namespace shop\n",
		"Conflicts       2\n  shop/web  FieldManagerConflict, 5m: helm\n  shop/mcpoidcconfig.toolhive.stacklok.dev/corp  FieldManagerConflict, 60m: jane\n",
		"Not checked: the operator: needs the right to be king\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	s.Operator = health.Operator{Object: "deployment.apps/freehold-a", Scope: cluster.Scope{Selector: "shard=a"}}
	if text := shown(t, s, false); !strings.Contains(text, "                freehold-a looks after the MCPServers with \"shard=a\"\n") {
		t.Errorf("it says %s", text)
	}
	s.Operator = health.Operator{NoElection: true}
	if text := shown(t, s, true); !strings.Contains(text, "Leader          none is elected") {
		t.Errorf("it says %s", text)
	}
	s.Operator = health.Operator{}
	if text := shown(t, s, true); !strings.Contains(text, "Operator        not known\n") || !strings.Contains(text, "Leader          not known\n") {
		t.Errorf("it says %s", text)
	}
}

func TestAnMCPServerIsShownWithAllThatBelongsToIt(t *testing.T) {
	at := func(ago time.Duration) *time.Time { then := morning.Add(-ago); return &then }
	s := Server{&health.Server{
		Namespace: "shop", Object: "mcpserver/web", Generation: 3, ObservedGeneration: 2,
		Conditions: []metav1.Condition{{Type: "Ready", Status: "False", Reason: "RollingOut", Message: "wait", LastTransitionTime: metav1.NewTime(*at(time.Minute))}},
		Children: []health.Child{
			{Object: "statefulset.apps/web", State: "1 of 2 ready", Created: at(time.Hour), Pods: []health.Child{
				{Object: "pod/web-0", State: "Running, ready", Created: at(time.Hour)}, {Object: "pod/web-1", State: "ImagePullBackOff", Created: at(time.Minute)},
			}},
			{Object: "service/mcp-web", State: "it is not the MCPServer's"},
		},
		NotChecked: []string{"events: needs the right to list events"},
	}}
	for i := range 12 {
		s.Events = append(s.Events, health.Event{Object: "pod/web-1", Type: "Warning", Reason: "BackOff", Message: fmt.Sprint("event ", i), Count: 5, Last: *at(time.Duration(12-i) * time.Second)})
	}
	want := `mcpserver/web (namespace shop)   at generation 3, and its status tells of 2
├─ statefulset.apps/web          1 of 2 ready                                 60m
│  ├─ pod/web-0                  Running, ready                               60m
│  └─ pod/web-1                  ImagePullBackOff                             60s
└─ service/mcp-web               it is not the MCPServer's

CONDITION   STATUS   REASON       SINCE   MESSAGE
Ready       False    RollingOut   60s     wait

LAST   EVENT     REASON    OBJECT      COUNT   MESSAGE
10s    Warning   BackOff   pod/web-1   5       event 2
`
	var short, wide bytes.Buffer
	if err := errors.Join(s.Print(&short, Palette{}, morning, false), s.Print(&wide, Palette{}, morning, true)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, short.String()[:min(len(want), short.Len())]); diff != "" || !strings.HasSuffix(short.String(), "event 11\nNot checked: events: needs the right to list events\n") {
		t.Errorf("(-want +got):\n%s\n%s", diff, &short)
	}
	if !strings.Contains(wide.String(), "event 0\n") {
		t.Errorf("wide is\n%s", &wide)
	}
}

func TestADiagnosisBeginsWithWhatIsWrong(t *testing.T) {
	finding := func(severity health.State, reason, object string) health.Finding {
		return health.Finding{Severity: severity, Reason: reason, Object: object, Namespace: "shop", Message: "it is wrong\x1b", Do: "Mend it."}
	}
	d := Diagnosis{health.Diagnosis{State: health.Error, Checks: []health.Check{
		{Name: "crds", About: "definitions", State: health.OK, Detail: "8 of 8 are there"},
		{Name: "names", State: health.OK, Detail: "none is taken"},
		{Name: "leader", State: health.NotChecked, NotChecked: []string{"needs the right to list pods"}},
		{Name: "images", State: health.Error, Detail: "5 MCPServers", Findings: []health.Finding{
			finding(health.Warning, "NoVersion", "mcpserver/b"), finding(health.Warning, "NoVersion", "mcpserver/c"), finding(health.Warning, "NoVersion", "mcpserver/d"),
			finding(health.Warning, "NoVersion", "mcpserver/e"), finding(health.Error, "Bad", "mcpserver/a"),
		}},
	}}}
	text := func(wide bool) string {
		var out bytes.Buffer
		if err := d.Print(&out, Palette{}, morning, wide); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	// What is wrong is read first; the rest keeps its order.
	want := `Error       images    5 MCPServers
  Error Bad: mcpserver/a in namespace shop: it is wrong\x1b
    Do: Mend it.
  Warning NoVersion: mcpserver/b in namespace shop: it is wrong\x1b
    Do: Mend it.
  Warning NoVersion: mcpserver/c in namespace shop: it is wrong\x1b
    Do: Mend it.
  Warning NoVersion: mcpserver/d in namespace shop: it is wrong\x1b
    Do: Mend it.
  NoVersion: and 1 more; -o wide shows them
NotChecked  leader
  not checked: needs the right to list pods
OK          crds      8 of 8 are there
OK          names     none is taken

Checks: 4; 1 with errors, 1 not checked, 0 with warnings.
`
	if diff := cmp.Diff(want, text(false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if wide := text(true); !strings.Contains(wide, "mcpserver/e") || strings.Contains(wide, "more") || !strings.Contains(wide, "looks at definitions\n") {
		t.Errorf("wide is\n%s", wide)
	}
}

// TestAnswersForProgramsHaveOnlyDocumentedKeys: each key of an answer is named by its type. A field without a name is one of the plugin's
// own, which no program is to see.
func TestAnswersForProgramsHaveOnlyDocumentedKeys(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var check func(reflect.Type)
	check = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			check(of.Elem())
		case reflect.Struct:
			if seen[of] || of == reflect.TypeFor[time.Time]() {
				return
			}
			seen[of] = true
			for field := range of.Fields() {
				key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if key == "-" || !field.IsExported() {
					continue
				}
				if key == "" && !field.Anonymous {
					t.Errorf("%v.%s has no key", of, field.Name)
				}
				check(field.Type)
			}
		}
	}
	for _, answer := range []any{Status{}, Server{}, Diagnosis{}, Conflicts{}, Takeovers{}, Ownership{}} {
		check(reflect.TypeOf(answer))
	}
	if len(seen) < 15 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}

// TestNoAgeIsNegative: the clock of the machine that wrote a time may be ahead of the plugin's.
func TestNoAgeIsNegative(t *testing.T) {
	if got := Age(morning.Add(time.Hour), morning); got != "0s" {
		t.Errorf("a time to come was %s ago", got)
	}
}
