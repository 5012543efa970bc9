// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/internal/shelltest"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

// operate starts an operator, by its image, in the namespace of the MCPServer.
func (w *world) operate(image string) {
	w.t.Helper()
	w.apply("kubectl", apply.NewObjectRef(managers.Deployment, "shop", "operator"), content{"spec": content{
		"replicas": int64(1), "template": content{"spec": content{"containers": []any{content{"name": "operator", "image": image}}}},
	}})
}

// The command that hands MCPServers over to ToolHive can be run again, when ToolHive's operator runs already.
func TestAHandbackCanBeRunAgain(t *testing.T) {
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

// What others write to an object between two requests of the plugin stops neither a handback nor its preview, nor that of a takeover.
func TestWritesOfOthersStopNoHandback(t *testing.T) {
	w := newWorld(t, nil)
	moves := func() {
		for _, child := range []*inventory.Child{inventory.Backend, inventory.Proxy} {
			w.apply("kube-controller-manager", child.Ref("shop", "web"), content{"metadata": content{"annotations": content{"seen": "yes"}}})
		}
	}
	for _, args := range [][]string{{"handback", "-A", "--dry-run"}, {"handback", "-A", "--yes"}, {"takeover", "--preview", "-A", known}} {
		var moved atomic.Bool // A preview sends several requests at a time.
		w.before = func(r *apiserver.Request) *apiserver.Answer {
			if r.Writes() && moved.CompareAndSwap(false, true) {
				moves()
			}
			return nil
		}
		if w.must(ExitDone, args...); !moved.Load() {
			t.Fatalf("%q sends no dry run", args)
		}
	}
}

// With the update strategy OnDelete Kubernetes replaces no pod, and the preview says so. The annotations that are not the plugin's stay.
func TestAPreviewSaysThatOnDeleteReplacesNoPod(t *testing.T) {
	onDelete := map[string]string{v1beta1.AnnotationBackendUpdateStrategy: "OnDelete", v1beta1.AnnotationBackendRollout: "paused"}
	for _, test := range []struct {
		annotations map[string]string
		restarts    string
		stay        []string
	}{
		{nil, "its pods are replaced now, in one rollout", nil},
		{onDelete, "no pod is replaced now", []string{v1beta1.AnnotationBackendRollout, v1beta1.AnnotationBackendUpdateStrategy}},
	} {
		w := newWorld(t, test.annotations)
		w.contest(otherImage)
		w.must(ExitDone, "take", "web", "--yes", "--wait=false", known)
		w.apply(managers.Requests, serverRef, content{"metadata": content{"annotations": content{v1beta1.AnnotationTakeRecord: "{}"}}})
		out, errOut := w.must(ExitDone, "handback", "web", "--dry-run")
		if !strings.Contains(out, "  backend: "+test.restarts) || strings.Contains(out, "now, in one rollout") != (test.annotations == nil) {
			t.Errorf("with %v it says\n%s", test.annotations, out)
		}
		if got := strings.Count(errOut, "keeps the annotation"); got != len(test.stay) {
			t.Errorf("with %v it says\n%s", test.annotations, errOut)
		}
		for _, annotation := range test.stay {
			if !strings.Contains(errOut, "kubectl annotate -n shop mcpserver.toolhive.stacklok.dev/web "+annotation+"-") {
				t.Errorf("of %s it says %s", annotation, errOut)
			}
		}
		w.must(ExitDone, "handback", "web", "--yes")
		if got := len(w.server().Annotations); got != len(test.stay) {
			t.Errorf("these stay: %v", w.server().Annotations)
		}
	}
}

// The command to mend an object names it by its whole kind, since another product may have a kind of that name.
func TestTheCommandToMendAnObjectNamesItsWholeKind(t *testing.T) {
	w := newWorld(t, nil)
	hooks := apply.NewObjectRef(v1beta1.Kind(v1beta1.MCPWebhookConfigKind), "shop", "hooks")
	w.apply("helm", serverRef, content{"spec": content{"proxyReadTimeout": "2d"}})
	w.apply("helm", hooks, content{"spec": content{"mutating": []any{content{"name": "audit", "timeout": "3d"}}}})
	out, _ := w.must(ExitFound, "handback", "web", "--yes")
	for _, object := range []string{"mcpserver.toolhive.stacklok.dev/web", "mcpwebhookconfig.toolhive.stacklok.dev/hooks"} {
		if !strings.Contains(out, "kubectl edit -n shop "+object) {
			t.Errorf("it names no command that edits %s:\n%s", object, out)
		}
	}
}

// The command that removes a fence is all that is on its line behind the colon, so that it can be pasted: not every shell knows comments
// there.
func TestTheCommandThatRemovesAFenceCanBePasted(t *testing.T) {
	w := newWorld(t, nil)
	name := cluster.RunnersFence.Name
	w.before = func(r *apiserver.Request) *apiserver.Answer {
		kind, spec := "ValidatingAdmissionPolicy", content{}
		switch r.Path {
		case "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/" + name:
		case "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/" + name:
			kind, spec = "ValidatingAdmissionPolicyBinding", content{"policyName": name, "validationActions": []any{"Deny"}}
		default:
			return nil
		}
		body, err := json.Marshal(content{"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": content{"name": name}, "spec": spec})
		if err != nil {
			t.Error(err)
		}
		return &apiserver.Answer{Code: http.StatusOK, Body: body}
	}
	out, _ := w.must(ExitFound, "handback", "web", "--yes")
	_, behind, _ := strings.Cut(out, "To remove it: ")
	command, _, _ := strings.Cut(behind, "\n")
	want := []string{"delete", "validatingadmissionpolicybinding", name, "--kubeconfig=" + os.DevNull, "--server=http://apiserver.invalid"}
	if diff := cmp.Diff([][]string{want}, shelltest.Calls(t, command)); diff != "" || strings.Contains(command, "#") {
		t.Errorf("it says\n%s\n(-want +got):\n%s", out, diff)
	}
}
