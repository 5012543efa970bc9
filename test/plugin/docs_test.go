// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/documents"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestDocumentation types the commands of the documentation, one after the other, as a user does who reads it beside an
// MCPServer with conflicts.
func TestDocumentation(t *testing.T) {
	s := newScene(t, withReplicas()...)
	s.contest(t)
	dir := t.TempDir()
	for _, command := range documents.Of(t) {
		line := command.Text
		if strings.Contains(line, " handback ") && s.operator != nil {
			// It runs as a process, so the plugin does not see it.
			s.stop(t)
			s.operator = nil
		}
		// 1 means that there are conflicts or differences, which is no failure.
		out := s.kubectl.Shell(t, "cd "+dir+" && { "+line+"; [ $? -le 1 ]; }")
		if out == "" && !strings.Contains(line, ">") && !strings.Contains(line, " diff ") {
			t.Errorf("%s prints nothing", line)
		}
	}
	if !strings.Contains(s.kubectl.Run(t, "get", "deployment/"+web, "-o", "yaml", "--show-managed-fields"), "manager: thv-operator") {
		t.Error("it is not handed back")
	}
	for name, want := range map[string]string{"web.html": "<title>Owners of mcpserver", "owners.json": `"path": ".spec.replicas"`} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s: %v, without %s", name, err, want)
		}
	}
}

// TestMigration types the commands of two sections of the page about the way from ToolHive, and back. Both operators are
// there as Deployments that have no pods.
func TestMigration(t *testing.T) {
	s := newScene(t)
	s.stop(t)
	// As Freehold's operator holds it, without the minute for which it leaves a new one to ToolHive's.
	s.kubectl.Do(t, harness.Call{
		Args:  []string{"apply", "--server-side", "--field-manager=" + managers.ConfigFinalizer, "-f", "-"},
		Input: strings.Replace(team, `"name":"team"`, `"name":"team","finalizers":["`+v1beta1.FinalizerGroup+`"]`, 1),
	})
	for name, image := range map[string]string{"toolhive-system/toolhive-operator": "ghcr.io/stacklok/toolhive/operator:v0.44.0", "freehold-system/freehold": "freehold"} {
		namespace, deployment, _ := strings.Cut(name, "/")
		s.kubectl.Shell(t, "kubectl create namespace "+namespace+" --dry-run=client -o yaml | kubectl apply -f -")
		s.kubectl.Run(t, "create", "deployment", deployment, "--image="+image, "-n", namespace)
		t.Cleanup(func() {
			if _, err := s.kubectl.Try(context.WithoutCancel(t.Context()), harness.Call{Args: []string{"delete", "deployment", deployment, "-n", namespace}}); err != nil {
				t.Error(err)
			}
		})
	}
	section := ""
	for _, command := range documents.Of(t) {
		if command.Section != section && section != "" {
			// It was stopped when Freehold was installed.
			s.kubectl.Run(t, "scale", "deployment/toolhive-operator", "-n", "toolhive-system", "--replicas=0")
		}
		section = command.Section
		line := command.Text
		out := s.kubectl.Shell(t, "{ "+line+"; code=$?; [ $code -eq 0 ] || { [ $code -eq 1 ] && echo '"+hindered+"'; }; }")
		if strings.Contains(out, hindered) != strings.Contains(line, "--preview") {
			t.Errorf("%s ended so: %s", line, out)
		}
	}
	s.checkHeld(t, managers.ClassToolHive)
	if held := s.kubectl.Run(t, "get", "mcpgroup/team", "-o", "yaml", "--show-managed-fields"); !strings.Contains(held, "manager: thv-operator") {
		t.Errorf("the group is not handed back: %s", held)
	}
}

// hindered is what a command is followed by that has found something in the way: ToolHive's operator.
const hindered = "[something blocks the takeover]"
