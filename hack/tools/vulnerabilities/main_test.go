// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// advisory is an entry of a database, about a function of the standard library that the program of TestScript calls.
const (
	advisory = `{"schema_version": "1.3.1", "id": "GO-2000-0001", "modified": "2000-01-01T00:00:00Z", "published": "2000-01-01T00:00:00Z",
	"summary": "For a test", "details": "For a test.", "database_specific": {"url": "https://pkg.go.dev/vuln/GO-2000-0001"},
	"affected": [{"package": {"name": "stdlib", "ecosystem": "Go"},
	"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
	"ecosystem_specific": {"imports": [{"path": "strings", "symbols": ["Clone"]}]}}]}`
	program = `package main

import "strings"

func main() { println(strings.Clone("x")) }
`
)

// TestScript runs hack/vulnerabilities.sh on a module of its own, with databases on disk: it finds a vulnerable function that
// is called, finds nothing in a database without one, and without a database it says so with an exit code of its own.
func TestScript(t *testing.T) {
	script, err := filepath.Abs("../../vulnerabilities.sh")
	if err != nil {
		t.Fatal(err)
	}
	module := t.TempDir()
	write(t, filepath.Join(module, "go.mod"), "module example.com/vulnerable\n\ngo 1.26.0\n")
	write(t, filepath.Join(module, "main.go"), program)
	for name, test := range map[string]struct {
		modules, output string
		code            int
		missing         bool
	}{
		"a vulnerability": {modules: `[{"path": "stdlib", "vulns": [{"id": "GO-2000-0001", "modified": "2000-01-01T00:00:00Z"}]}]`, code: 1, output: "strings.Clone"},
		"none":            {modules: `[]`, output: "No vulnerabilities found."},
		"no database":     {missing: true, code: 75, output: "skipped: "},
	} {
		t.Run(name, func(t *testing.T) {
			database := t.TempDir()
			if !test.missing {
				write(t, filepath.Join(database, "index", "db.json"), `{"modified": "2000-01-01T00:00:00Z"}`)
				write(t, filepath.Join(database, "index", "modules.json"), test.modules)
				write(t, filepath.Join(database, "ID", "GO-2000-0001.json"), advisory)
			}
			cmd := exec.CommandContext(t.Context(), script, module)
			cmd.Env = append(os.Environ(), "FREEHOLD_VULNERABILITIES=file://"+filepath.ToSlash(database), "GOFLAGS=")
			output, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != test.code || !strings.Contains(string(output), test.output) {
				t.Errorf("exit code %d, want %d; output, want %q in it:\n%s", code, test.code, test.output, output)
			}
		})
	}
}

// TestReach asks servers that answer, refuse, and never answer.
func TestReach(t *testing.T) {
	hold := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/silent/index/db.json" {
			<-hold
		}
		if r.URL.Path != "/index/db.json" {
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	defer close(hold)
	if err := reach(t.Context(), server.URL); err != nil {
		t.Error(err)
	}
	if err := reach(t.Context(), server.URL+"/elsewhere"); err == nil {
		t.Error("no error of a server that does not have the database")
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := reach(short, server.URL+"/silent"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v of a server that never answers", err)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
