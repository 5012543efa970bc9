// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// operate starts an operator, by its image, in the namespace of the MCPServer.
func (w *world) operate(image string) {
	w.t.Helper()
	w.apply("kubectl", apply.NewObjectRef(managers.Deployment, "shop", "operator"), content{"spec": content{
		"replicas": int64(1), "template": content{"spec": content{"containers": []any{content{"name": "operator", "image": image}}}},
	}})
}

// TestHandbackAgain: the command that hands MCPServers over to ToolHive can be run again, when ToolHive's operator runs already.
func TestHandbackAgain(t *testing.T) {
	w := newWorld(t, nil)
	w.operate("ghcr.io/stacklok/toolhive/operator:v0.62.0")
	if out, _ := w.must(ExitFound, "handback", "-A", "--yes"); !strings.Contains(out, "ToolHive's operator runs") || len(w.writes) > 0 {
		t.Fatalf("with ToolHive's operator it sends %q, and says\n%s", w.writes, out)
	}
	w.operate("example.com/nothing:v1")
	w.must(ExitDone, "handback", "-A", "--yes")
	w.operate("ghcr.io/stacklok/toolhive/operator:v0.62.0")
	if out, errOut := w.must(ExitDone, "handback", "-A", "--yes"); out != "Freehold owns nothing of them.\n" || errOut != "" {
		t.Errorf("the second time it says\n%s%s", out, errOut)
	}
	w.operate("example.com/freehold:v1")
	if out, _ := w.must(ExitFound, "handback", "-A", "--yes"); !strings.Contains(out, "Freehold's operator runs") {
		t.Errorf("with Freehold's operator it says\n%s", out)
	}
}
