// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const passing = `package p

import "testing"

func TestGood(t *testing.T) { t.Log("nobody needs to see this") }

func TestSkipped(t *testing.T) { t.Skip("there is no moon tonight") }

func TestWithParts(t *testing.T) {
	t.Run("one", func(t *testing.T) {})
	t.Run("two", func(t *testing.T) { t.Skip("not on Sundays") })
}
`

const failing = `package p

import "testing"

func TestGood(t *testing.T) { t.Log("nobody needs to see this") }

func TestBad(t *testing.T) { t.Error("two and two is five") }
`

const panicking = `package p

import "testing"

func TestPanics(t *testing.T) { panic("out of cheese") }
`

// endingAtOnce is a package whose TestMain says why it runs no test, and ends with a code.
func endingAtOnce(why string, code int) string {
	return fmt.Sprintf(`package p

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	fmt.Println(%q)
	os.Exit(%d)
}

func TestGood(t *testing.T) {}
`, why, code)
}

const notRun = "SKIP: the suite does not run: there is no moon tonight"

// TestReport feeds the report with what go test really writes.
func TestReport(t *testing.T) {
	cases := []struct {
		name, file string
		want       []string
		failed     bool
	}{
		{
			name: "passing", file: passing,
			want: []string{
				"ok  \texample.com/p\tTIME",
				"        skipped TestSkipped: p_test.go:7: there is no moon tonight",
				"        skipped TestWithParts/two: p_test.go:11: not on Sundays",
				"2 passed, 0 failed, 2 skipped, in 1 packages",
			},
		},
		{
			name: "failing", file: failing, failed: true,
			want: []string{
				"    p_test.go:7: two and two is five",
				"--- FAIL: TestBad (TIME)",
				"FAIL\texample.com/p\tTIME",
				"        failed TestBad",
				"          p_test.go:7: two and two is five",
				"1 passed, 1 failed, 0 skipped, in 1 packages",
			},
		},
		{
			name: "panicking", file: panicking, failed: true,
			want: []string{"panic: out of cheese", "FAIL\texample.com/p\tTIME", "        failed TestPanics", "0 passed, 1 failed, 0 skipped, in 1 packages"},
		},
		{
			name: "giving up", file: endingAtOnce("no ground to stand on", 1), failed: true,
			want: []string{"no ground to stand on", "FAIL\texample.com/p\tTIME", "0 passed, 0 failed, 0 skipped, in 1 packages"},
		},
		{
			name: "left out", file: endingAtOnce(notRun, 0),
			want: []string{
				"ok  \texample.com/p\tTIME",
				"        skipped the package: the suite does not run: there is no moon tonight",
				"0 passed, 0 failed, 1 skipped, in 1 packages",
			},
		},
		{
			name: "left out where it is required", file: endingAtOnce(notRun, 1), failed: true,
			want: []string{
				"SKIP: the suite does not run: there is no moon tonight", "FAIL\texample.com/p\tTIME",
				"0 passed, 0 failed, 0 skipped, in 1 packages",
			},
		},
		{
			name: "not building", file: "package p\n\nvar x int = \"\"\n", failed: true,
			want: []string{"./p_test.go:3:13: cannot use", "FAIL\texample.com/p [build failed]", "0 passed, 0 failed, 0 skipped, in 1 packages"},
		},
	}
	times := regexp.MustCompile(`[0-9.]+s`)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			events := goTest(t, tc.file)
			summary := filepath.Join(t.TempDir(), "summary")
			var out strings.Builder
			failed, err := run(strings.NewReader(events), &out, summary)
			if err != nil {
				t.Fatal(err)
			}
			if failed != tc.failed {
				t.Errorf("failed is %t, want %t", failed, tc.failed)
			}
			got := times.ReplaceAllString(out.String(), "TIME")
			rest := got
			for _, want := range tc.want {
				at := strings.Index(rest, want)
				if at < 0 {
					t.Fatalf("%q is not, or not in its place, in:\n%s", want, got)
				}
				rest = rest[at+len(want):]
			}
			if strings.Contains(got, "nobody needs to see this") {
				t.Errorf("shows what a test that passed wrote:\n%s", got)
			}
			data, err := os.ReadFile(summary)
			if err != nil {
				t.Fatal(err)
			}
			if total := tc.want[len(tc.want)-1]; !strings.HasSuffix(string(data), total+"\n") {
				t.Errorf("the summary is %q, want it to end with %q", data, total)
			}
		})
	}
}

// TestPassesOnWhatIsNoEvent covers what go says before it runs anything.
func TestPassesOnWhatIsNoEvent(t *testing.T) {
	var out strings.Builder
	if _, err := run(strings.NewReader("go: cannot find main module\n"), &out, ""); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "go: cannot find main module\n") {
		t.Errorf("got %q", out.String())
	}
}

// TestMentionsLongTests shows that a suite of long tests is seen to move on.
func TestMentionsLongTests(t *testing.T) {
	events := `{"Action":"pass","Package":"p","Test":"TestLong","Elapsed":61.4}
{"Action":"pass","Package":"p","Test":"TestLong/part","Elapsed":60}
{"Action":"pass","Package":"p","Test":"TestShort","Elapsed":0.1}
`
	var out strings.Builder
	if _, err := run(strings.NewReader(events), &out, ""); err != nil {
		t.Fatal(err)
	}
	if want := "        TestLong took 61 s\n2 passed, 0 failed, 0 skipped, in 0 packages\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// goTest runs go test -json on a package with one file and returns what it wrote.
func goTest(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module example.com/p\n\ngo 1.26.0\n", "p_test.go": file} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// With -trimpath, the same file in another directory is the same test, of which Go would show what it has in its cache.
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-json", "./...")
	cmd.Dir = dir
	output, err := cmd.Output()
	if err != nil && len(output) == 0 {
		t.Fatal(err)
	}
	return string(output)
}
