// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/test/harness"
)

// later is how long after the test the plugin is run, as its clock tells: so every age is the same.
const later = 30*24*time.Hour + time.Hour

// call is one run of the plugin.
type call struct {
	// Args of the plugin, without those that say which cluster and namespace are meant.
	args []string
	// Input is what the user answers; empty for nobody who would answer.
	input string
	// Variables of the environment.
	variables map[string]string
	// Terminal tells that the output is shown on one.
	terminal bool
	// ownClock lets the plugin see the real time.
	ownClock bool
}

// result is what came of a run.
type result struct {
	code        int
	out, errOut string
}

// do runs the plugin in this process.
func do(t *testing.T, ns *harness.Namespace, c call) result {
	t.Helper()
	var out, errOut bytes.Buffer
	e := cmd.OfProcess()
	e.IOStreams = genericiooptions.IOStreams{In: strings.NewReader(c.input), Out: &out, ErrOut: &errOut}
	if !c.ownClock {
		e.Clock = clocktesting.NewFakeClock(time.Now().Add(later))
	}
	e.LookupEnv = func(name string) (string, bool) { value, ok := c.variables[name]; return value, ok }
	e.Terminal, e.Interactive = c.terminal, c.input != ""
	where := []string{"--kubeconfig=" + ns.Cluster.Kubeconfig(), "--namespace=" + ns.Name, "--cache-dir=" + t.TempDir()}
	// In front of what is typed, of which completion looks at the end; behind the word by which it is asked for.
	args := slices.Concat(c.args[:1], where, c.args[1:])
	code := cmd.Run(t.Context(), e, args)
	// Printed commands have the option that names this cluster, which is another one in each run.
	plain := func(text string) string { return strings.ReplaceAll(text, " "+where[0], "") }
	return result{code: code, out: plain(out.String()), errOut: plain(errOut.String())}
}

// must runs the plugin, which must end with a code.
func must(t *testing.T, ns *harness.Namespace, code int, args ...string) result {
	t.Helper()
	got := do(t, ns, call{args: args})
	if got.code != code {
		t.Fatalf("freehold %s ended with %d, want %d\n%s%s", strings.Join(args, " "), got.code, code, got.out, got.errOut)
	}
	return got
}

// golden compares a text with a file of testdata, or writes that.
func golden(t *testing.T, ns *harness.Namespace, name, text string) {
	t.Helper()
	text = normal(ns, text)
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test ./plugin -update writes it", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// varying is what differs from run to run, and what it is replaced by, which is as long as it.
var varying = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "00000000-0000-0000-0000-000000000000"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "2026-01-01T00:00:00Z"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), strings.Repeat("0", 64)},
	{regexp.MustCompile(`("?resourceVersion"?: )("|&#34;)\d+("|&#34;)`), `${1}${2}1${3}`},
	{regexp.MustCompile(`(=[-0-9a-f]{36}/\d+@)\d+`), `${1}1`},
	{regexp.MustCompile(`("?clusterIP"?: )"?10\.[0-9.]+"?`), `${1}10.0.0.1`},
	{regexp.MustCompile(`- 10\.\d+\.\d+\.\d+`), "- 10.0.0.1"},
}

// normal replaces what differs from run to run.
func normal(ns *harness.Namespace, text string) string {
	text = strings.ReplaceAll(text, ns.Name, "test-ns")
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.by)
	}
	return text
}
