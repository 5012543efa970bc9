// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"slices"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/mcpclient"
)

// TestHandback goes all the way: ToolHive makes MCPServers, kubectl freehold says what a takeover will change, Freehold
// takes them over and makes one of its own, kubectl freehold hands them back, and ToolHive's operator goes on with them.
func TestHandback(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	p := upstream(t, ns)
	members := only(t, "edited", "plain-sse", "edited-stdio")
	w := settle(t, ns, members)
	if err := p.Stop(); err != nil {
		t.Error(err)
	}

	said := w.preview(t)
	before, movements := map[string]components{}, recordMovements(t, ns)
	for _, m := range members {
		before[m.server.Name] = w.components(t, m.server)
	}
	operator := ns.Operate(t, byFreehold()...)
	own := &member{server: tested("own", v1beta1.TransportStreamableHTTP, harness.Environment("LEVEL", "0"))}
	ns.Create(t, own.server)
	for _, m := range members {
		w.awaitTaken(t, m)
		t.Run("as said/"+m.server.Name, func(t *testing.T) {
			w.checkPreview(t, m, said[m.server.Name], before[m.server.Name], w.components(t, m.server), movements.of(t, w, m.server.Name))
		})
	}
	w.AwaitSettled(t, own.server.Name)
	harness.Stop(t, operator)

	all := slices.Concat(members, []*member{own})
	for _, m := range all {
		t.Log(w.plugin(t, cmd.ExitDone, "handback", "mcpserver/"+m.server.Name, "--dry-run"))
	}
	for _, m := range all {
		w.plugin(t, cmd.ExitDone, "handback", "mcpserver/"+m.server.Name, "--yes")
		w.checkHandedBack(t, m)
	}
	upstream(t, ns)
	t.Run("resumed", func(t *testing.T) {
		for _, m := range all {
			t.Run(m.server.Name, func(t *testing.T) {
				t.Parallel()
				w.awaitRest(t, m)
				mcpclient.AwaitAnswers(t, ns, machine, m.server, 3)
				w.Edit(t, m.server.Name, level("9"))
				w.awaitRest(t, m)
				mcpclient.AwaitAnswers(t, ns, machine, m.server, 3)
				w.checkHandedBack(t, m)
				backend := w.MustObject(t, harness.Backend, m.server.Name)
				if text := text(backend.Object); !strings.Contains(text, `"name":"LEVEL","value":"9"`) {
					t.Errorf("the edit has not come to the backend: %s", text)
				}
			})
		}
	})
}

// checkHandedBack checks that Freehold owns nothing of an MCPServer any more, nor kubectl freehold, and that nothing tells
// of it but the proxy's template, which ToolHive's operator writes anew.
func (w *world) checkHandedBack(t *testing.T, m *member) {
	t.Helper()
	for component, object := range w.components(t, m.server) {
		for _, entry := range object.GetManagedFields() {
			if managers.ClassOf(entry.Manager, "") == managers.ClassFreehold || entry.Manager == managers.Plugin {
				t.Errorf("the %s is still held by %s", component, entryName(&entry))
			}
		}
		for key := range object.GetAnnotations() {
			if strings.HasPrefix(key, "freehold.dev/") {
				t.Errorf("the %s still has the annotation %s", component, key)
			}
		}
		if text := text(object.Object); component == harness.ServerItself && (strings.Contains(text, "FieldsOwned") || strings.Contains(text, "TakenOver")) {
			t.Errorf("the status still tells of Freehold: %s", text)
		}
	}
}
