// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/printable"
)

const hostile = "x\x1b[2J\r\u202e\u009b"

func environment(out, errOut *bytes.Buffer) Environment {
	return Environment{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut},
		Clock:     testingclock.NewFakeClock(time.Unix(0, 0)),
		LookupEnv: func(string) (string, bool) { return "", false },
	}
}

// What is for people is printable: notes, effects and errors.
func TestOutputForPeopleIsPrintable(t *testing.T) {
	var out, errOut bytes.Buffer
	if code := Run(t.Context(), environment(&out, &errOut), []string{"explain", "mcpserver/web:" + hostile, "-o", hostile}); code != ExitFailed {
		t.Errorf("exit code %d", code)
	}
	p, _ := build(environment(&out, &errOut))
	p.warn("%s\n%s", hostile, hostile)
	p.say("%s\n%s", hostile, hostile)
	if err := (&viewer{planner: planner{plugin: p}}).answer(printers.Conflicts{
		Servers: []printers.ServerConflicts{{Name: hostile, Told: &printers.Told{Message: hostile}}},
	}, false, false); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{out.String(), errOut.String()} {
		if printable.Lines(text) != text || !strings.Contains(text, `x\x1b[2J`) {
			t.Errorf("it prints\n%q", text)
		}
	}
	if got := strings.Count(errOut.String(), "\n"); got != 2 {
		t.Errorf("%d lines of errors and notes:\n%s", got, &errOut)
	}
}

// What is for programs is exact.
func TestOutputForProgramsIsExact(t *testing.T) {
	var out, errOut bytes.Buffer
	p, _ := build(environment(&out, &errOut))
	if err := (&viewer{planner: planner{plugin: p}, output: printers.JSON}).answer(printers.Conflicts{
		Servers: []printers.ServerConflicts{{Name: hostile, Take: "\ufdd0"}},
	}, false, false); err != nil {
		t.Fatal(err)
	}
	var got printers.Conflicts
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Servers[0].Name != hostile || got.Servers[0].Take != "\ufdd0" {
		t.Errorf("it prints\n%s", &out)
	}
}
