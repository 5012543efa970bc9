// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestHandback hands an MCPServer back that Freehold has made, and looks whether it is then as ToolHive would have it.
func TestHandback(t *testing.T) {
	s := newScene(t, append(withReplicas(), harness.InlineAuthorization)...)
	s.others(t)
	s.stop(t)
	s.checkUnreadable(t)
	golden(t, s.Namespace, "handback-dry-run", must(t, s.Namespace, cmd.ExitDone, "handback", "mcpserver/web", "--dry-run").out)
	if declined := do(t, s.Namespace, call{args: []string{"handback", "web"}, input: "n\n"}); declined.code != cmd.ExitDeclined {
		t.Fatalf("it ended with %d: %s", declined.code, declined.errOut)
	}
	s.checkHeld(t, managers.ClassFreehold)
	got := must(t, s.Namespace, cmd.ExitDone, "handback", "web", "--yes")
	if got.errOut != "" {
		t.Errorf("it says %s", got.errOut)
	}
	s.checkHeld(t, managers.ClassToolHive)
	for _, component := range harness.ComponentsOf(s.server(t)) {
		object := s.MustObject(t, component, web)
		for key := range object.GetAnnotations() {
			if strings.HasPrefix(key, "freehold.dev/") {
				t.Errorf("%s still has the annotation %s", component, key)
			}
		}
	}
	owners := must(t, s.Namespace, cmd.ExitDone, "owners", "mcpserver/web", "-o", "tree").out
	golden(t, s.Namespace, "handback-owners", justNow.ReplaceAllString(owners, ", 0s:"))
	// ToolHive's operator may run by then.
	s.kubectl.Run(t, "create", "deployment", "theirs", "--image=ghcr.io/stacklok/toolhive/operator:v0.44.0")
	again := must(t, s.Namespace, cmd.ExitDone, "handback", "web", "--yes")
	s.kubectl.Run(t, "delete", "deployment", "theirs")
	if again.out != "Freehold owns nothing of them.\n" {
		t.Errorf("the second time it says %s", again.out)
	}
}

// TestHandbackUnderPolicies hands an MCPServer back where the admission policies of deploy/policy are installed. Those which keep
// ToolHive's runners and its operator from writing are in the way, with the commands that remove them. The others let the
// handback pass. With the policy for it, a ToolHive's operator that runs is in the way of no takeover.
func TestHandbackUnderPolicies(t *testing.T) {
	t.Parallel()
	s := newSceneOf(t, harness.NewForTest(t), withReplicas()...)
	policies := filepath.Join("..", "..", "deploy", "policy")
	s.kubectl.Run(t, "apply", "-k", policies)
	const in = "--namespace=toolhive-system"
	s.kubectl.Shell(t, "kubectl create namespace toolhive-system --dry-run=client -o yaml | kubectl apply -f -")
	s.kubectl.Run(t, "create", "deployment", "theirs", "--image=ghcr.io/stacklok/toolhive/operator:v0.44.0", in)
	must(t, s.Namespace, cmd.ExitFound, "takeover", "--preview", "web", known)
	s.kubectl.Run(t, "apply", "-k", filepath.Join(policies, "beside-toolhive"))
	// The policy is about another ServiceAccount than the one of this Deployment, until that is changed.
	if out := must(t, s.Namespace, cmd.ExitFound, "takeover", "--preview", "web", known).out; !strings.Contains(out, "system:serviceaccount:toolhive-system:default") {
		t.Errorf("the preview says %s", out)
	}
	s.kubectl.Run(t, "set", "serviceaccount", "deployment", "theirs", "toolhive-operator", in)
	if out := must(t, s.Namespace, cmd.ExitDone, "takeover", "--preview", "web", known).out; strings.Contains(out, "theirs") {
		t.Errorf("the preview says %s", out)
	}
	s.kubectl.Run(t, "delete", "deployment", "theirs", in)
	s.await(t, "the policies are asked", func(ctx context.Context) error {
		_, err := s.kubectl.Try(ctx, harness.Call{Args: []string{"create", "configmap", "probe", "--dry-run=server", "--field-manager=freehold-probe"}})
		if err == nil || !strings.Contains(err.Error(), "freehold-field-managers") {
			return fmt.Errorf("not refused: %w", err)
		}
		return nil
	})
	s.stop(t)
	refused := must(t, s.Namespace, cmd.ExitFound, "handback", "web", "--yes").out
	s.checkHeld(t, managers.ClassFreehold)
	commands := strings.Split(refused, "To remove it: ")[1:]
	if len(commands) != 2 {
		t.Fatalf("it does not say how to remove what is in the way: %s", refused)
	}
	for _, command := range commands {
		s.kubectl.Shell(t, strings.SplitN(command, "\n", 2)[0])
	}
	must(t, s.Namespace, cmd.ExitDone, "handback", "web", "--yes")
	s.checkHeld(t, managers.ClassToolHive)
}

// checkUnreadable checks that nothing is handed back while ToolHive's operator cannot read an MCPServer, though it is not
// the one that is handed back.
func (s *scene) checkUnreadable(t *testing.T) {
	t.Helper()
	long := harness.Server("long", v1beta1.TransportStdio, func(server *v1beta1.MCPServer) {
		server.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: "redis", Address: "redis:6379"}
		server.Spec.RateLimiting = &v1beta1.RateLimitConfig{Shared: &v1beta1.RateLimitBucket{MaxTokens: 1, RefillPeriod: "2d"}}
	})
	s.Create(t, long)
	refused := do(t, s.Namespace, call{args: []string{"handback", "mcpserver/web", "--yes"}})
	if refused.code != cmd.ExitFound || !strings.Contains(refused.out, `spec.rateLimiting.shared.refillPeriod "2d" of MCPServer long`) {
		t.Errorf("with an MCPServer that ToolHive cannot read it ended with %d: %s%s", refused.code, refused.out, refused.errOut)
	}
	s.checkHeld(t, managers.ClassFreehold)
	s.Delete(t, long.Name, metav1.DeletePropagationBackground)
}

// justNow is the age of an entry that the plugin has just written, by its own clock.
var justNow = regexp.MustCompile(`, \ds:`)

// checkHeld checks that every object of the MCPServer is held by one side, and by the other not at all.
func (s *scene) checkHeld(t *testing.T, want managers.ManagerClass) {
	t.Helper()
	for _, component := range harness.ComponentsOf(s.server(t)) {
		holders := classes(s.MustObject(t, component, web))
		for _, class := range []managers.ManagerClass{managers.ClassFreehold, managers.ClassToolHive} {
			if (holders[class] > 0) != (class == want) {
				t.Errorf("%s has %d entries of %s", component, holders[class], class)
			}
		}
		if ownership.ApplyEntry(s.MustObject(t, component, web), managers.Plugin, "") != nil {
			t.Errorf("%s is held by the plugin", component)
		}
	}
}

func classes(object *unstructured.Unstructured) map[managers.ManagerClass]int {
	found := map[managers.ManagerClass]int{}
	for _, entry := range object.GetManagedFields() {
		found[managers.ClassOf(entry.Manager, "")]++
	}
	return found
}
