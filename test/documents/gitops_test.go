// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestGitOps types the page, and does with MCPServers what the tools do that it is about: they compare what is in Git with what is in the
// cluster, on the server and by the last applied configuration; they track objects by a label and an annotation; and they replace objects
// where a user configures it.
func TestGitOps(t *testing.T) {
	r := newReader(t)
	r.Operate(t)
	for _, command := range Of(t) {
		r.kubectl.Run(t, "create", "namespace", "argocd")
		if out := r.types(t, command); !strings.Contains(out, "configmap/argocd-cm") {
			t.Errorf("%v shows %s", command, out)
		}
	}

	const onServer, byClient = "on-server", "by-client"
	manifests := map[string]string{}
	for _, name := range []string{onServer, byClient} {
		server := harness.Server(name, v1beta1.TransportStreamableHTTP, harness.Replicas(1, 1))
		server.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: v1beta1.MCPServerKind}
		server.Labels = map[string]string{v1beta1.LabelAppInstance: "my-application"}
		server.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "my-application:toolhive.stacklok.dev/MCPServer:" + r.Name + "/" + name}
		content, err := yaml.Marshal(server)
		if err != nil {
			t.Fatal(err)
		}
		manifests[name] = filepath.Join(t.TempDir(), name+".yaml")
		if err := os.WriteFile(manifests[name], content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	manager := []string{"--server-side", "--field-manager=argocd-controller"}
	r.kubectl.Run(t, append([]string{"apply", "-f", manifests[onServer]}, manager...)...)
	r.kubectl.Run(t, "apply", "-f", manifests[byClient])
	r.AwaitSettled(t, onServer)
	r.AwaitSettled(t, byClient)
	// kubectl diff fails if there is a difference.
	r.kubectl.Run(t, append([]string{"diff", "-f", manifests[onServer]}, manager...)...)
	r.kubectl.Run(t, "diff", "-f", manifests[byClient])

	before := map[string]map[harness.Component]string{}
	for _, name := range []string{onServer, byClient} {
		for id, child := range r.MustObjectsOf(t, name) {
			if id == harness.ServerItself {
				continue
			}
			if owner := metav1.GetControllerOf(child); owner == nil || owner.Name != name {
				t.Errorf("a tool may prune %v, whose owners are %v", id, child.GetOwnerReferences())
			}
			if child.GetLabels()[v1beta1.LabelAppInstance] == "my-application" || child.GetAnnotations()["argocd.argoproj.io/tracking-id"] != "" {
				t.Errorf("%v is tracked as the application's: %v, %v", id, child.GetLabels(), child.GetAnnotations())
			}
		}
		before[name] = r.Generations(t, name)
	}

	r.kubectl.Run(t, "replace", "-f", manifests[byClient])
	r.kubectl.Run(t, "wait", "mcpserver", byClient, "--for=jsonpath={.metadata.finalizers}", "--timeout=1m")
	r.AwaitSettled(t, byClient)
	after := map[string]map[harness.Component]string{}
	for _, name := range []string{onServer, byClient} {
		after[name] = r.Generations(t, name)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("kubectl replace changes workloads (-before +after):\n%s", diff)
	}
}
