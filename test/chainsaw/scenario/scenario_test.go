// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// server is what the API server of these tests has.
const server = `{"kind": "List", "items": [{"apiVersion": "example.com/v1", "kind": "Server", "metadata": {"name": "st", "labels": {"a": "b", "c": "d"}},
	"spec": {"port": 80, "verbs": ["get", "list"], "empty": {}},
	"status": {"phase": "Ready", "conditions": [{"type": "Other", "status": "False"}, {"type": "Available", "status": "True"}]}}]}`

// identity begins each assertion of these tests. The name is an expression.
const identity = "apiVersion: example.com/v1\nkind: Server\nmetadata:\n  name: ($prefix)\n"

func TestAnAssertionIsOfWhatAnObjectHasAndHasNot(t *testing.T) {
	for name, c := range map[string]struct {
		want string
		// differs is what is said of the difference; empty where there is none.
		differs string
	}{
		"nothing but the name":       {"", ""},
		"some of the labels":         {"  labels:\n    a: b\n", ""},
		"another label":              {"  labels:\n    a: c\n", `.metadata.labels.a: want "c", got "b"`},
		"a label that is not there":  {"  labels:\n    z: b\n", ".metadata.labels.z: want b, it is missing"},
		"a number":                   {"spec:\n  port: 80\n", ""},
		"another number":             {"spec:\n  port: 81\n", ".spec.port: want 81, got 80"},
		"a text for a number":        {"spec:\n  port: \"80\"\n", `.spec.port: want "80", got 80`},
		"a list":                     {"spec:\n  verbs: [get, list]\n", ""},
		"a shorter list":             {"spec:\n  verbs: [get]\n", ".spec.verbs: want [get], got [get list]"},
		"a list in another order":    {"spec:\n  verbs: [list, get]\n", `.spec.verbs[0]: want "list", got "get"`},
		"a list for a number":        {"spec:\n  port: [80]\n", ".spec.port: want [80], got 80"},
		"an object":                  {"spec:\n  empty: {}\n", ""},
		"an object for a number":     {"spec:\n  port: {}\n", ".spec.port: want an object, got 80"},
		"a key of a number":          {"spec:\n  port:\n    name: http\n", ".spec.port.name: want http, it is missing"},
		"nothing for a value":        {"status:\n  phase: null\n", ".status.phase: want <nil>, got \"Ready\""},
		"an expression as the value": {"status:\n  phase: (join('', ['Rea', 'dy']))\n", ""},
		"an expression as the key":   {"status:\n  (conditions[?type == 'Available'] | [0].status): \"True\"\n", ""},
		"one that is not so":         {"status:\n  (conditions[?type == 'Other'] | [0].status): \"True\"\n", `want "True", got "False"`},
		"one that finds nothing":     {"status:\n  (conditions[?type == 'Gone'] | [0].status): \"True\"\n", `want "True", got <nil>`},
		"one that cannot be read":    {"status:\n  (conditions[): \"True\"\n", "SyntaxError"},
		"one about what is unknown":  {"status:\n  phase: ($other)\n", "variable not defined: $other"},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, try(t, "- assert:\n    file: object.yaml\n", identity+c.want), c.differs)
		})
	}
}

// TestOperations tries operations on a kubectl that applies nothing but the object that the API server has.
func TestOperations(t *testing.T) {
	for name, c := range map[string]struct{ operation, object, fails string }{
		"an object that can be applied":      {"- apply:\n    file: object.yaml\n", identity, ""},
		"one that cannot":                    {"- apply:\n    file: object.yaml\n", "kind: Other", "is refused"},
		"the second of a file, which cannot": {"- apply:\n    file: object.yaml\n", identity + "---\nkind: Other", "is refused"},
		"one that is not there":              {"- assert:\n    file: object.yaml\n", "kind: Other", "is not found"},
		"one that is to be refused, and is":  {"- apply:\n    file: object.yaml\n    expect:\n    - check: {($error != null): true}\n", "kind: Other", ""},
		"one that is to be refused, and is not": {
			"- apply:\n    file: object.yaml\n    expect:\n    - check: {($error != null): true}\n", identity, "want true, got false",
		},
		"one whose error is to have fields, which no text has": {
			"- apply:\n    file: object.yaml\n    expect:\n    - check: {($error.message): refused}\n", "kind: Other", "want \"refused\", got <nil>\nexit status 1: it is refused",
		},
		"an object in the scenario itself": {"- assert:\n    resource: {kind: Server, metadata: {name: st}, status: {phase: Failed}}\n", "", `want "Failed", got "Ready"`},
		"a script":                         {"- script:\n    env: [{name: name, value: \"(join('-', [$prefix, 'x']))\"}]\n    content: test $name = st-x\n", "", ""},
		"a script that fails":              {"- script:\n    content: echo all is wrong; exit 1\n", "", "exit status 1: all is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, try(t, c.operation, c.object), c.fails)
		})
	}
}

// TestWhatIsNotKnownIsNotRead refuses to read what it would have to leave out.
func TestWhatIsNotKnownIsNotRead(t *testing.T) {
	for name, c := range map[string]struct{ operation, object, says string }{
		"an unknown operation":         {"- sleep: {duration: 1s}\n", "", `unknown field "sleep"`},
		"an unknown field":             {"- assert:\n    file: object.yaml\n    timeout: 1s\n", identity, `unknown field "timeout"`},
		"no operation":                 {"- {}\n", "", "it has no operation"},
		"a file that is not there":     {"- assert:\n    file: other.yaml\n", identity, "other.yaml"},
		"a file without an object":     {"- assert:\n    file: object.yaml\n", "# nothing\n", "object.yaml has no object"},
		"an assertion without a thing": {"- assert: {}\n", "", "neither a file nor a resource"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(files(c.operation, c.object), "some/one")
			expect(t, err, c.says)
		})
	}
}

func TestFailuresAreListedAndFailAsListed(t *testing.T) {
	list, err := ParseList([]byte("differences: [{reason: because, operations: {listed: some verbs}}]"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		operation string
		outcome   error
		says      string
	}{
		"passes":                       {"other", nil, ""},
		"fails":                        {"other", errors.New("want some verbs"), "want some verbs"},
		"listed, fails":                {"listed", errors.New("want some verbs"), ""},
		"listed, fails with something": {"listed", errors.New("connection refused"), "not with"},
		"listed, passes":               {"listed", nil, "take it off the list"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, list.Judge(c.operation, c.outcome), c.says) })
	}
}

// TestFiguresCountWhatRunsPassesAndDiffers counts what runs, passes and differs, and names what is listed and not
// there.
func TestFiguresCountWhatRunsPassesAndDiffers(t *testing.T) {
	list, err := ParseList([]byte(`
leftOut: [{reason: another kind, scenarios: [left, gone]}]
skipped: [{reason: needs more, operations: ["step: script"]}]
differences: [{reason: on purpose, operations: {"step: assert object.yaml": verbs, "step: assert gone.yaml": verbs}}]`))
	if err != nil {
		t.Fatal(err)
	}
	one, err := Read(files("- apply: {file: object.yaml}\n- assert: {file: object.yaml}\n- script: {content: x}\n", identity), "some/one")
	if err != nil {
		t.Fatal(err)
	}
	all, run := []string{"left", "some/one", "some/two"}, []*Scenario{one, one}
	if list.Runs("left") || !list.Runs("some/one") {
		t.Error("it does not run what is not left out")
	}
	text := list.Figures(all, run)
	for _, want := range []string{
		"2 of 3 scenarios run, and 4 operations of them: 2 pass, 2 differ.", "| 2 | on purpose |", "| 2 | needs more |", "| `left`, `gone` | another kind |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if stale := strings.Join(list.Stale(all, run), ", "); stale != "gone, step: assert gone.yaml" {
		t.Errorf("stale are %s", stale)
	}
}

// files are a scenario with these operations in a step, and its object.
func files(operations, object string) fstest.MapFS {
	const begin = "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nspec:\n  bindings: [{name: prefix, value: st}]\n  steps:\n  - name: step\n    try:\n"
	return fstest.MapFS{
		"some/one/chainsaw-test.yaml": {Data: []byte(begin + "    " + strings.ReplaceAll(operations, "\n", "\n    "))},
		"some/one/object.yaml":        {Data: []byte(object)},
	}
}

// try reads a scenario with one operation and tries it, on a kubectl that knows only the object server.
func try(t *testing.T, operation, object string) error {
	t.Helper()
	s, err := Read(files(operation, object), "some/one")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kubectl := "#!/bin/sh\ngrep -q '\"kind\":\"Server\".*\"name\":\"st\"' || { echo \"it is refused, or is not found\" >&2; exit 1; }\ncat <<'E'\n" + server + "\nE\n"
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(kubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	return s.Operations[0].Try(t.Context(), []string{"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")})
}

// expect wants an error that says something, or none.
func expect(t *testing.T, err error, says string) {
	t.Helper()
	if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
		t.Errorf("got %v, want %q", err, says)
	}
}
