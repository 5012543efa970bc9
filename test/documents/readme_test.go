// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestMakeRun runs what the README begins with, until it has shown that everything is ready, and presses Ctrl-C.
func TestMakeRun(t *testing.T) {
	// With a cluster of the reader's it would use that.
	environment := slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "KUBECONFIG=") })
	for _, command := range Of(t) {
		p := start(t, command.Text, environment)
		p.Await(t, "Everything is ready", patience)
		// The table of who owns what comes last.
		for _, sample := range []string{"echo-http", "echo-sse", "echo-stdio"} {
			p.Await(t, "mcpserver/"+sample, patience)
		}
		lookForYourself(t, p.Said(), environment)
		interrupt(t, p)
		if !strings.Contains(p.Said(), "Stopping.") {
			t.Errorf("%v does not say that it stops", command)
		}
	}
}

// TestMakeRunOnACluster runs it on a cluster of the reader's: it leaves the MCPServers of others alone, takes its samples away, and does
// nothing where Freehold is installed.
func TestMakeRunOnACluster(t *testing.T) {
	r := newReader(t)
	r.Create(t, harness.ServerWithAllChildren(web))
	const show = "kubectl get mcpserver/" + web + " -o jsonpath='{.metadata.resourceVersion}'"
	before, err := r.attempt(t, show)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := r.attempt(t, "make run ARGS=-once"); err != nil || !strings.Contains(out, "Everything is ready") {
		t.Fatalf("make run ends with %v\n%s", err, out)
	}
	if after, err := r.attempt(t, show); err != nil || after != before {
		t.Errorf("the MCPServer of another namespace has version %s after %s, and %v", after, before, err)
	}
	if left, err := r.attempt(t, "kubectl get mcpservers -n freehold-samples -o name"); err != nil || left != "" {
		t.Errorf("of the samples %q is left, and %v", left, err)
	}
	r.installOperator(t)
	if out, err := r.attempt(t, "make run ARGS=-once"); err == nil || !strings.Contains(err.Error(), "is installed in this cluster") {
		t.Errorf("beside Freehold make run ends with %v\n%s", err, out)
	}
}

// lookForYourself types what make run invites to type.
func lookForYourself(t *testing.T, said string, environment []string) {
	t.Helper()
	_, after, _ := strings.Cut(said, "Look for yourself")
	_, after, _ = strings.Cut(after, "\n")
	block, _, _ := strings.Cut(after, "\n\n")
	command := exec.CommandContext(t.Context(), "sh", "-e", "-c", block)
	command.Env = environment
	out, err := command.CombinedOutput()
	for _, want := range []string{"deployment.apps/echo-http", "freehold-finalizer", "freehold-backend "} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s ends with %v, want %s in\n%s", block, err, want, out)
		}
	}
}

// TestInstall follows the README on a cluster. The operator's pods are fake there; a process stands in for them.
func TestInstall(t *testing.T) {
	r := newReader(t)
	r.removeOperator(t)
	r.Operate(t)
	var out string
	for _, command := range Of(t) {
		out = r.types(t, command)
		if strings.Contains(command.Text, "deploy/samples") {
			for _, name := range []string{"echo-http", "echo-sse", "echo-stdio"} {
				r.AwaitReady(t, name)
			}
		}
	}
	if strings.Count(out, "Ready") != 3 || !strings.Contains(out, "http://mcp-echo-sse-proxy."+r.Name) {
		t.Errorf("kubectl get mcpservers shows\n%s", out)
	}
}

// TestFirstServer creates the MCPServer of the README, and waits for it. The call itself needs pods that answer.
func TestFirstServer(t *testing.T) {
	r := newReader(t)
	r.Operate(t)
	var out string
	for _, command := range Of(t) {
		out = r.types(t, command)
	}
	if !strings.Contains(out, "http://mcp-echo-http-proxy."+r.Name) {
		t.Errorf("the last command shows\n%s", out)
	}
}

// TestTutorial follows the tutorial, and measures how long each part takes.
func TestTutorial(t *testing.T) {
	r := newReader(t)
	r.Operate(t)
	began, section := time.Now(), ""
	for _, command := range Of(t) {
		if command.Section != section && section != "" {
			t.Logf("%s: %v", section, time.Since(began).Round(time.Second))
			began = time.Now()
		}
		section = command.Section
		out := r.types(t, command)
		var want string
		switch {
		case strings.Contains(command.Text, "get mcpserver echo-http"):
			want = "http://mcp-echo-http-proxy." + r.Name
		case strings.Contains(command.Text, "owners"):
			want = managers.Proxy
		case strings.Contains(command.Text, "conflicts"):
			want = "kubectl-set"
		case strings.Contains(command.Text, "get deployment"):
			want = "2/2"
		case strings.Contains(command.Text, "get mcpserver echo-authenticated"):
			want = "Ready"
		}
		if !strings.Contains(out, want) {
			t.Errorf("%v shows, without %q,\n%s", command, want, out)
		}
	}
	t.Logf("%s: %v", section, time.Since(began).Round(time.Second))
}

// TestInstallPlugin builds the plugin as its page says, and calls it through kubectl, in one shell.
func TestInstallPlugin(t *testing.T) {
	r := newReader(t)
	var lines []string
	for _, command := range Of(t) {
		lines = append(lines, command.Text)
	}
	line := strings.Join(lines, " && ")
	out, err := r.attempt(t, line)
	if err != nil || !strings.Contains(out, "owners") || !strings.Contains(out, "kubectl freehold") {
		t.Errorf("%v\n%s", err, out)
	}
	// This is what kubectl runs for its own completion.
	if out, err := r.attempt(t, line+" >&2 && kubectl __complete freehold own"); err != nil || !strings.Contains(out, "owners\t") {
		t.Errorf("completed is %q: %v", out, err)
	}
}
