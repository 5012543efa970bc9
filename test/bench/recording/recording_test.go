// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shapes tells the runs of a recording by what identifies them, and when they took place.
func shapes(r *Recording) (all []string) {
	for _, run := range r.Runs {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d/%d %s %s", run.Servers, run.PerNamespace, run.Commit, run.Later)))
	}
	return all
}

// Runs that differ in how many MCPServers a namespace has are beside one another, and each is replaced by one of its own kind.
func TestARunIsKnownByItsNamespacesToo(t *testing.T) {
	r := &Recording{}
	for _, run := range []Run{
		{Servers: 300, PerNamespace: 20}, {Servers: 100}, {Servers: 300}, {Servers: 100, PerNamespace: 20}, {Servers: 300, PerNamespace: 5},
	} {
		if r.Has(run.Servers, run.PerNamespace) {
			t.Errorf("it has %+v before that is added", run)
		}
		run.Commit = "first"
		r.Add(run)
	}
	r.Add(Run{Servers: 300, PerNamespace: 20, Commit: "second"})
	want := []string{"100/0 first", "100/20 first", "300/0 first", "300/5 first", "300/20 second"}
	if diff := cmp.Diff(want, shapes(r)); diff != "" {
		t.Errorf("the runs (-want +got):\n%s", diff)
	}
	if !r.Has(300, 20) || r.Has(300, 10) || r.Has(200, 20) {
		t.Error("it has other runs")
	}
	if diff := cmp.Diff([]string{"100/20 first", "300/20 second"}, shapes(r.Of(20))); diff != "" {
		t.Errorf("the runs with 20 (-want +got):\n%s", diff)
	}
	if len(r.Of(7).Runs) != 0 || len(r.Runs) != 5 {
		t.Errorf("there are %v with 7, and %v in all", shapes(r.Of(7)), shapes(r))
	}
}

// The runs that were recorded before MCPServers were spread had all in one namespace, and stay beside others.
func TestAFileWithoutNamespacesIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recorded.json")
	old := `{"Machine": {"CPUs": 2}, "Runs": [{"Commit": "old", "Servers": 100, "Rounds": 1, "Workers": 8}]}`
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Continue(path, Machine{CPUs: 2})
	if err != nil || !r.Has(100, 0) {
		t.Fatalf("read: %+v, %v", r, err)
	}
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "PerNamespace") {
		t.Errorf("written: %s, %v", text, err)
	}
	r.Add(Run{Servers: 100, PerNamespace: PerNamespace, Commit: "new"})
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	if r, err = Read(path); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"100/0 old", "100/20 new"}, shapes(r)); diff != "" {
		t.Errorf("the runs (-want +got):\n%s", diff)
	}
}

// Runs beside a later release of ToolHive are beside those of the machine's, in whatever order they were recorded.
func TestRunsBesideALaterReleaseStayBesideOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recorded.json")
	for _, run := range []Run{
		{Servers: 100, Later: "v0.63.0", Commit: "first"},
		{Servers: 100, Commit: "first"},
		{Servers: 300, Commit: "first"},
		{Servers: 100, Later: "v0.62.0", Commit: "first"},
		{Servers: 100, Later: "v0.63.0", Commit: "second"},
	} {
		machine := Machine{CPUs: 2, ToolHive: "v0.44.0"}
		if run.Later != "" {
			machine.ToolHive = ""
		}
		r, err := Continue(path, machine)
		if err != nil {
			t.Fatal(err)
		}
		run.ToolHive = &Subject{}
		r.Add(run)
		if err := r.Write(path); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Read(path)
	if err != nil || r.Machine.ToolHive != "v0.44.0" {
		t.Fatalf("read: %+v, %v", r, err)
	}
	want := []string{"100/0 first", "100/0 first v0.62.0", "100/0 second v0.63.0", "300/0 first"}
	if diff := cmp.Diff(want, shapes(r)); diff != "" {
		t.Errorf("the runs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"100/0 first", "300/0 first"}, shapes(r.Of(0))); diff != "" {
		t.Errorf("those without a later release (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"100/0 second v0.63.0"}, shapes(r.Beside("v0.63.0", 0))); diff != "" {
		t.Errorf("those with v0.63.0 (-want +got):\n%s", diff)
	}
	if r.Has(200, 0) || !r.Has(100, 0) {
		t.Error("it has other runs")
	}
}
