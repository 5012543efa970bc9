// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// greeterLines is how long a program is that uses Freehold as a library: examples/configmap-controller has fewer lines,
// of every kind, as wc -l counts them.
const greeterLines = 150

// greeterUser is who the example is to the API server.
const greeterUser = "greeter"

// greetingScene is examples/configmap-controller at work.
type greetingScene struct {
	ns      *harness.Namespace
	kubectl *harness.Kubectl
	program *harness.Program
	begin   audit.Mark
}

func newGreetingScene(t *testing.T) *greetingScene {
	t.Helper()
	binary := build(t, "configmap-controller")
	ns := env.Namespace(t)
	s := &greetingScene{ns: ns, kubectl: ns.Kubectl(t), begin: ns.Mark(t)}
	s.kubectl.Run(t, "apply", "--server-side", "-f", filepath.Join("..", "..", "examples", "configmap-controller", "crd.yaml"))
	s.kubectl.Run(t, "wait", "--for=condition=Established", "crd/greetings.example.com")
	// The program does what its own rights allow: those of a Role, not those of an administrator.
	s.kubectl.Run(t, "create", "role", "greeter", "--verb=get,list,watch,patch,create", "--resource=configmaps")
	s.kubectl.Do(t, harness.Call{Args: []string{"apply", "-f", "-"}, Input: `{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "greetings"},
		"rules": [
			{"apiGroups": ["example.com"], "resources": ["greetings"], "verbs": ["get", "list", "watch"]},
			{"apiGroups": ["example.com"], "resources": ["greetings/status"], "verbs": ["patch"]}
		]}`})
	s.kubectl.Run(t, "create", "rolebinding", "greeter", "--role=greeter", "--user="+greeterUser)
	s.kubectl.Run(t, "create", "rolebinding", "greetings", "--role=greetings", "--user="+greeterUser)
	kubeconfig, err := ns.Cluster.UserKubeconfig(greeterUser)
	if err != nil {
		t.Fatal(err)
	}
	s.program = start(t, ns, binary, "--kubeconfig="+kubeconfig)
	return s
}

// greet makes a Greeting, or changes its text.
func (s *greetingScene) greet(t *testing.T, name, text string) {
	t.Helper()
	s.kubectl.Do(t, harness.Call{Args: []string{"apply", "--server-side", "-f", "-"}, Input: fmt.Sprintf(
		`{"apiVersion": "example.com/v1", "kind": "Greeting", "metadata": {"name": %q}, "spec": {"text": %q}}`, name, text)})
}

// await waits until the ConfigMap has a greeting and the Greeting's status tells of a problem with all the words, or of
// none.
func (s *greetingScene) await(t *testing.T, name, greeting string, problem ...string) (configMap *corev1.ConfigMap) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%s says %q, problem %q", name, greeting, problem), func(ctx context.Context) (err error) {
		configMap, err = s.ns.Core.CoreV1().ConfigMaps(s.ns.Name).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		told, err := s.kubectl.Try(ctx, harness.Call{Args: []string{"get", "greeting", name, "-o", "jsonpath={.status.problem}"}})
		if err != nil {
			return err
		}
		for _, words := range problem {
			if !strings.Contains(told, words) {
				return fmt.Errorf("the problem is %q", told)
			}
		}
		if got := configMap.Data["greeting"]; got != greeting || len(problem) == 0 && told != "" {
			return fmt.Errorf("it says %q, and the problem is %q", got, told)
		}
		return nil
	})
	return configMap
}

// writes returns what the program has written to ConfigMaps since a mark, refused writes included.
func (s *greetingScene) writes(t *testing.T, since audit.Mark) []*audit.Event {
	t.Helper()
	s.ns.Mark(t)
	events, _, err := s.ns.Audit.Since(since, audit.Writes(), audit.User(greeterUser), audit.Namespace(s.ns.Name), audit.Resource("", "configmaps"))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// TestLibrary runs examples/configmap-controller, which owns a key of a ConfigMap with Freehold's packages, against the
// hands of kubectl.
func TestLibrary(t *testing.T) {
	t.Parallel()
	s := newGreetingScene(t)
	owned := []string{
		".data.greeting", ".metadata.annotations.example.com/greeting",
	}

	s.greet(t, "hello", "Good morning")
	created := s.await(t, "hello", "Good morning")
	owned = append(owned, fmt.Sprintf(".metadata.ownerReferences[uid=%q]", created.OwnerReferences[0].UID))
	checkClaims(t, created, map[claim][]string{applied("greeter"): owned})

	// Others have what is theirs, and the program has nothing to do with it.
	mark := s.ns.Mark(t)
	s.kubectl.Run(t, "label", "configmap", "hello", "team=front")
	s.kubectl.Run(t, "patch", "configmap", "hello", "--type=merge", `-p={"data":{"farewell":"Bye"}}`)
	s.greet(t, "hello", "Good evening")
	shared := s.await(t, "hello", "Good evening")
	if shared.Labels["team"] != "front" || shared.Data["farewell"] != "Bye" {
		t.Errorf("what others have written is gone: %v, %v", shared.Labels, shared.Data)
	}
	if sent := s.writes(t, mark); len(sent) != 1 {
		t.Errorf("one change of the Greeting was %d writes: %v", len(sent), sent)
	}

	// kubectl takes the key: that is reported, and not forced.
	mark = s.ns.Mark(t)
	s.kubectl.Run(t, "patch", "configmap", "hello", "--type=merge", `-p={"data":{"greeting":"Hands off"}}`, "--field-manager=kubectl-edit")
	s.await(t, "hello", "Hands off", "kubectl-edit", ".data.greeting")
	s.kubectl.Run(t, "annotate", "greeting", "hello", "example.com/look=again")
	s.greet(t, "other", "Hello")
	s.await(t, "other", "Hello") // Names are worked on one after the other.
	for _, e := range s.writes(t, mark) {
		if e.Name == "hello" {
			t.Errorf("a conflict that managedFields show needs no request: %v", e)
		}
	}

	// Once the key is free, the program has it again, and says so.
	s.kubectl.Run(t, "patch", "configmap", "hello", "--type=json", `-p=[{"op":"remove","path":"/data/greeting"}]`, "--field-manager=kubectl-edit")
	s.await(t, "hello", "Good evening")

	// What is deleted comes back; what somebody else has made under that name stays theirs.
	s.kubectl.Run(t, "delete", "configmap", "hello")
	if again := s.await(t, "hello", "Good evening"); again.UID == shared.UID {
		t.Error("the ConfigMap has not been deleted")
	}
	s.kubectl.Run(t, "create", "configmap", "taken", "--from-literal=greeting=Mine")
	s.greet(t, "taken", "Yours")
	if foreign := s.await(t, "taken", "Mine", "belongs to something else"); len(foreign.OwnerReferences) != 0 {
		t.Errorf("the program has made the ConfigMap its own: %v", foreign.OwnerReferences)
	}

	for _, e := range s.writes(t, s.begin) {
		if e.FieldManager != "greeter" || e.Force != nil && *e.Force || e.Name == "taken" {
			t.Errorf("this should not have been sent: %v", e)
		}
	}
	interrupt(t, s.program)
}

// TestLibraryIsSmall counts what the example takes.
func TestLibraryIsSmall(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "configmap-controller", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	lines := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(text), "\n")
		if strings.Contains(string(text), "MCPServer") {
			t.Errorf("%s knows of MCPServers", file)
		}
	}
	t.Logf("%d lines", lines)
	if lines >= greeterLines {
		t.Errorf("the example has %d lines, want fewer than %d", lines, greeterLines)
	}
}
