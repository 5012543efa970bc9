// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/hack/toolhive"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestBesideHelm installs Freehold where Helm owns the definitions, of an older ToolHive: both as Helm 3 leaves them and as Helm 4 does.
// Without definitions of its own there is no conflict, and Freehold does with the older ones. With them, the API server refuses them,
// says why, and nothing of those that are there changes; nor does it where Freehold's own tools are called. Nothing is forced.
func TestBesideHelm(t *testing.T) {
	harness.Long(t)
	for _, helm := range []toolhive.Helm{toolhive.Helm3, toolhive.Helm4} {
		t.Run(fmt.Sprintf("Helm %d", helm), func(t *testing.T) {
			r := newReaderOf(t, harness.NewForTest(t))
			r.kubectl.Run(t, "delete", "-k", filepath.Join(Root, "deploy", "crd"))
			names, err := toolhive.DefineByHelm(t.Context(), r.Config, helm)
			if err != nil {
				t.Fatal(err)
			}
			r.letCollectorKnow(t)
			wantEntry(t, r, helm)
			before := r.definitions(t, names)

			r.refuseDefinitions(t, helm)
			if after := r.definitions(t, names); after != before {
				t.Fatalf("the definitions were\n%s\nand are\n%s", before, after)
			}

			// Only now the installation that the documentation names: what the refused one has left does not help.
			r.kubectl.Run(t, "delete", "-f", filepath.Join(Root, "deploy", "install-without-crd.yaml"))
			r.kubectl.Run(t, "apply", "--server-side", "-f", filepath.Join(Root, "deploy", "install-without-crd.yaml"))
			if _, err := r.Cluster.ServiceAccountKubeconfig(t.Context(), operator.Namespace, operator.ServiceAccount); err != nil {
				t.Fatal(err)
			}
			r.Operate(t, "--configs=freehold")
			r.kubectl.Do(t, harness.Call{Args: []string{"apply", "--server-side", "-f", "-"}, Input: `{
				"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPOIDCConfig", "metadata": {"name": "corp"},
				"spec": {"type": "inline", "inline": {"issuer": "https://id.example.com", "clientId": "freehold"}}}`})
			server := harness.ServerWithAllChildren(web)
			server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "corp", Audience: "freehold"}
			r.Create(t, server)
			r.AwaitSettled(t, web)
			r.await(t, v1beta1.ConditionFieldsOwned, metav1.ConditionTrue)
			r.kubectl.Run(t, "wait", "mcpoidcconfig/corp", "--for=jsonpath={.status.observedGeneration}=1", "--timeout=2m")
			if after := r.definitions(t, names); after != before {
				t.Fatalf("with Freehold at work the definitions were\n%s\nand are\n%s", before, after)
			}
		})
	}
}

// letCollectorKnow lets the garbage collector know kinds that have just been defined.
func (r *reader) letCollectorKnow(t *testing.T) {
	t.Helper()
	if err := r.Cluster.StopComponent(cluster.ControllerManager); err != nil {
		t.Fatal(err)
	}
	if err := r.Cluster.StartComponent(t.Context(), cluster.ControllerManager); err != nil {
		t.Fatal(err)
	}
}

// wantEntry checks that the definitions are Helm's as that version leaves them.
func wantEntry(t *testing.T, r *reader, helm toolhive.Helm) {
	t.Helper()
	want := map[toolhive.Helm]string{toolhive.Helm3: "helm Update", toolhive.Helm4: "helm Apply"}[helm]
	const entries = `go-template={{range .metadata.managedFields}}{{if not .subresource}}{{.manager}} {{.operation}}{{"\n"}}{{end}}{{end}}`
	if got := r.kubectl.Run(t, "get", "crd", definitionOfServers, "--show-managed-fields", "-o", entries); strings.TrimSpace(got) != want {
		t.Fatalf("the definition is held by %q, want %q", got, want)
	}
}

// definitions are the versions of the definitions, with who holds them. Their status is the API server's.
func (r *reader) definitions(t *testing.T, names []string) string {
	t.Helper()
	const versions = `go-template={{range .items}}{{.metadata.name}} {{.metadata.uid}} {{.metadata.generation}} {{.metadata.annotations}}` +
		`{{range .metadata.managedFields}}{{if not .subresource}} {{.manager}} {{.operation}} {{.time}}{{end}}{{end}}{{"\n"}}{{end}}`
	return r.kubectl.Run(t, slices.Concat([]string{"get", "crd", "--show-managed-fields", "-o", versions}, names)...)
}

// refuseDefinitions tries each way in which Freehold's definitions can be installed.
func (r *reader) refuseDefinitions(t *testing.T, helm toolhive.Helm) {
	t.Helper()
	_, err := r.kubectl.Try(t.Context(), harness.Call{Args: []string{"apply", "--server-side", "-f", filepath.Join(Root, "deploy", "install.yaml")}})
	if err == nil {
		t.Fatal("install.yaml is applied without a conflict")
	}
	for _, want := range []string{`conflicts with "helm"`, ".spec.versions", ".metadata.annotations.controller-gen.kubebuilder.io/version"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the conflict does not name %q: %v", want, err)
		}
	}

	out, err := r.attempt(t, "kubectl freehold crd")
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || out != "" {
		t.Errorf("kubectl freehold crd ends with %v and prints %s", err, out)
	}
	operation := map[toolhive.Helm]string{toolhive.Helm3: "Update", toolhive.Helm4: "Apply"}[helm]
	says := []string{
		"field manager helm (" + operation + ") owns .metadata.annotations.controller-gen.kubebuilder.io/version, .spec.versions, " +
			"as of the Helm release toolhive-system/toolhive-operator-crds, of the CustomResourceDefinitions mcpauthzconfigs.toolhive.stacklok.dev, ",
		"the CustomResourceDefinition mcpservers.toolhive.stacklok.dev in the cluster lacks what Freehold's has: spec.proxyReadTimeout, spec.sessionStorage.tls.",
		"deploy/install-without-crd.yaml",
	}
	for _, want := range says {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("kubectl freehold crd does not say %q: %v", want, err)
		}
	}
	preview, err := r.attempt(t, "kubectl freehold takeover --preview -A 2>&1")
	if err != nil {
		t.Error(err)
	}
	for _, want := range says {
		if !strings.Contains(preview, want) {
			t.Errorf("the preview does not say %q: %s", want, preview)
		}
	}

	var told strings.Builder // As make run does on a cluster that is there.
	if err := operator.Install(context.WithoutCancel(t.Context()), r.Config, &told); err != nil {
		t.Error(err)
	}
	if count := strings.Count(told.String(), "stays as it is: field manager helm owns "); count == 0 || count != strings.Count(told.String(), "\n") {
		t.Errorf("an installation says\n%s", told.String())
	}
}
