// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
)

func TestANameLeadsToTheMCPServersItMayBeOf(t *testing.T) {
	for _, test := range []struct {
		kind schema.GroupKind
		name string
		want []string
	}{
		{managers.Deployment, "web", []string{"web"}},
		{managers.StatefulSet, "web", []string{"web"}},
		{managers.ServiceKind, "mcp-web-proxy", []string{"web", "web-proxy"}},
		{managers.ServiceKind, "mcp-web-headless", []string{"web", "web-headless"}},
		{managers.ServiceKind, "mcp-web", []string{"web"}},
		{managers.ServiceKind, "mcp--proxy", []string{"-proxy"}}, // no name at all before the suffix
		{managers.ServiceKind, "web", nil},
		{managers.ServiceKind, "mcp-", nil},
		{managers.ConfigMap, "web-runconfig", []string{"web"}},
		{managers.ConfigMap, "web-authz-inline", []string{"web"}},
		{managers.ConfigMap, "web-runconfig-0123456789abcdef", []string{"web"}},
		{managers.ConfigMap, "web-authz-inline-0123456789abcdef", []string{"web"}},
		{managers.ConfigMap, "web-runconfig-0123456789abcdeg", nil},
		{managers.ConfigMap, "web-runconfig-0123456789abcde", nil},
		{managers.ConfigMap, "web-0123456789abcdef", nil},
		{managers.ConfigMap, "kube-root-ca.crt", nil},
		{managers.ConfigMap, "-runconfig", nil},
		{managers.ServiceAccount, "web-sa", []string{"web"}},
		{managers.ServiceAccount, "default", nil},
		{managers.Role, "web-proxy-runner", []string{"web"}},
		{managers.RoleBinding, "web-proxy-runner", []string{"web"}},
		{managers.MCPServer, "web", nil},
	} {
		if diff := cmp.Diff(test.want, inventory.Servers(test.kind, test.name)); diff != "" {
			t.Errorf("MCPServers of %s %s (-want +got):\n%s", test.kind, test.name, diff)
		}
	}
}

// genServerName draws names in which the affixes occur as well.
func genServerName() *rapid.Generator[string] {
	part := rapid.SampledFrom([]string{"web", "a", "mcp-", "-proxy", "-sa", "-headless", "-proxy-runner"})
	return rapid.Custom(func(t *rapid.T) string {
		name := ""
		for _, p := range rapid.SliceOfN(part, 1, 4).Draw(t, "parts") {
			name += p
		}
		return name
	})
}

// A name leads to an MCPServer just if that has a child of this kind and name.
func TestNamesAndServersAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		server := genServerName().Draw(t, "server")
		for _, child := range inventory.Children() {
			name := child.Name(server)
			if child.ByContent {
				name = child.ContentName(server, map[string]string{"key": server})
			}
			if !slices.Contains(inventory.Servers(child.Kind, name), server) {
				t.Fatalf("%s %s is a child of %s, and does not lead to it", child.Kind, name, server)
			}
		}
		kind := rapid.SampledFrom(append(inventory.Kinds(), managers.MCPServer)).Draw(t, "kind")
		object := apply.NewObjectRef(kind, "", genServerName().Draw(t, "object"))
		servers := inventory.Servers(kind, object.Name)
		if len(slices.Compact(slices.Clone(servers))) != len(servers) {
			t.Fatalf("%s leads to an MCPServer twice: %q", object, servers)
		}
		for _, found := range servers {
			child := inventory.Named(object, found)
			if child == nil || child.Kind != kind || !child.ByContent && child.Name(found) != object.Name {
				t.Fatalf("%s leads to %s, and is no child of it", object, found)
			}
		}
	})
}

// The rows of the table fit together, and with the field managers.
func TestTheRowsOfTheTableFitTogether(t *testing.T) {
	registry, children := managers.Registry(), inventory.Children()
	for i, child := range children {
		what := child.Kind.Kind + " " + child.Name("NAME")
		for _, writer := range []string{child.Writer, child.Replicas} {
			if _, known := registry.Writer(writer, child.Kind, ""); writer != "" && !known {
				t.Errorf("%s: %s is no registered writer of its kind", what, writer)
			}
		}
		if managers.CountsReplicas(child.Replicas) != (child.Replicas != "") {
			t.Errorf("%s: %s does not count replicas", what, child.Replicas)
		}
		if got := inventory.MainWriter(child.Kind, child.Name("web")); got != child.Writer {
			t.Errorf("%s: its main writer is %s, found as %s", what, child.Writer, got)
		}
		for _, dependency := range child.DependsOn {
			if at := slices.Index(children, dependency); at < 0 || at >= i {
				t.Errorf("%s depends on %s, which does not come before it", what, dependency.Name("NAME"))
			}
		}
		for _, other := range children[:i] {
			if other.Kind == child.Kind && other.Selector != child.Selector && !other.ByContent {
				t.Errorf("%s and %s are selected by different labels, and their names can meet", what, other.Name("NAME"))
			}
			if other.Kind == child.Kind && other.Name("web") == child.Name("web") {
				t.Errorf("%s is there twice", what)
			}
		}
	}
	for _, writer := range registry.Writers() {
		if inventory.Of(writer.Kind) == nil && writer.Kind != managers.MCPServer && managers.ConfigOf(writer.Kind) == nil {
			t.Errorf("%s writes %s, although no child is of that kind", writer.Name, writer.Kind)
		}
	}
}

// Whatever is rendered, or was under an earlier spec, is in the table, and comes in the table's order.
func TestEverythingRenderedIsAChild(t *testing.T) {
	children, seen := inventory.Children(), map[*inventory.Child]bool{}
	for _, transport := range []v1beta1.Transport{v1beta1.TransportStdio, v1beta1.TransportSSE, v1beta1.TransportStreamableHTTP} {
		for name, authz := range map[string]*v1beta1.AuthzConfigRef{
			"none":   nil,
			"inline": {Type: v1beta1.AuthzConfigTypeInline, Inline: &v1beta1.InlineAuthzConfig{Policies: []string{"permit(principal, action, resource);"}}},
		} {
			server := &v1beta1.MCPServer{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web", Generation: 1},
				Spec:       v1beta1.MCPServerSpec{Image: "example.com/mcp:1", Transport: transport, AuthzConfig: authz},
			}
			result, err := render.Render(render.Input{Server: server}, render.Options{})
			if err != nil {
				t.Fatalf("transport %s, authorization %s: %v", transport, name, err)
			}
			last := 0
			for _, intent := range result.Intents {
				object := apply.NewObjectRef(intent.Kind, "", intent.Name)
				if got := inventory.Named(object, "web"); got == nil || got != intent.Child {
					t.Errorf("%s is rendered, and not the child that its intent names", object)
				}
				seen[intent.Child] = true
				if labels := labelsOf(t, intent.Config); intent.Writer == intent.Child.Writer && labels[intent.Child.Selector.Key] != intent.Child.Selector.Value {
					t.Errorf("%s is not selected by its labels %v", object, labels)
				}
				at := slices.Index(children, intent.Child)
				if at < last {
					t.Errorf("%s is rendered out of order", object)
				}
				last = at
			}
			for _, absent := range result.Absent {
				object := apply.NewObjectRef(absent.Kind, "", absent.Name)
				if inventory.Named(object, "web") == nil {
					t.Errorf("%s was rendered once, and is no child", object)
				}
			}
		}
	}
	for _, child := range children {
		if !seen[child] {
			t.Errorf("%s %s is in the table, and never rendered", child.Kind, child.Name("web"))
		}
	}
}

func labelsOf(t *testing.T, config runtime.ApplyConfiguration) map[string]string {
	t.Helper()
	body, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	object := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(body, &object); err != nil {
		t.Fatal(err)
	}
	return object.Labels
}
