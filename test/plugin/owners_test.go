// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestOwners shows objects that many have written.
func TestOwners(t *testing.T) {
	s := newScene(t, harness.Replicas(1, 1))
	s.others(t)
	s.patch(t, "deployments", "scale", scaler, map[string]any{"spec": map[string]any{"replicas": 2}})
	for name, test := range map[string]struct {
		call
		code int
	}{
		"owners-deployment":          {call: call{args: []string{"owners", "deployment/web"}}},
		"owners-deployment-wide":     {call: call{args: []string{"owners", "deployment", "web", "-o", "wide"}}},
		"owners-deployment-tree":     {call: call{args: []string{"owners", "deploy/web", "-o", "tree"}}},
		"owners-service":             {call: call{args: []string{"owners", "service/mcp-web"}}},
		"owners-role-yaml":           {call: call{args: []string{"owners", "role/web-proxy-runner", "-o", "yaml"}}},
		"owners-role-json":           {call: call{args: []string{"owners", "role.rbac.authorization.k8s.io/web-proxy-runner", "-o", "json"}}},
		"owners-server-alone":        {call: call{args: []string{"owners", "mcpserver/web", "--alone"}}},
		"owners-server-tree":         {call: call{args: []string{"owners", "mcpservers", "web", "-o", "tree"}}},
		"owners-coloured":            {call: call{args: []string{"owners", "configmap/" + s.MustNameOf(t, harness.RunConfig, web)}, terminal: true}},
		"owners-deployment-coloured": {call: call{args: []string{"owners", "deployment/web", "--color=always"}}},
		"owners-tree-coloured":       {call: call{args: []string{"owners", "deploy/web", "--color=always", "-o", "tree"}}},
		"owners-role-html":           {call: call{args: []string{"owners", "role/web-proxy-runner", "-o", "html"}}},
		"owners-crd":                 {call: call{args: []string{"owners", "crd/mcpservers.toolhive.stacklok.dev", "-o", "tree"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := do(t, s.Namespace, test.call)
			if got.code != test.code || got.errOut != "" {
				t.Fatalf("ended with %d: %s", got.code, got.errOut)
			}
			golden(t, s.Namespace, name, got.out)
		})
	}
}

func TestOwnersOfAllNamespaces(t *testing.T) {
	s, elsewhere := newScene(t), env.Namespace(t)
	var answer printers.Ownership
	if err := json.Unmarshal([]byte(must(t, elsewhere, cmd.ExitDone, "owners", "deployments", "-A", "-o", "json").out), &answer); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(answer.Objects, func(o printers.ObjectOwnership) bool { return o.Namespace == s.Name && o.Name == web }) {
		t.Errorf("it does not show the Deployment of %s", s.Name)
	}
	if got := must(t, elsewhere, cmd.ExitFailed, "owners", "deployment/web", "-A"); !strings.Contains(got.errOut, "by name across all namespaces") {
		t.Errorf("with a name it says %s", got.errOut)
	}
}

// Colour is for terminals, unless the user says otherwise.
func TestColourIsForTerminals(t *testing.T) {
	ns := env.Namespace(t)
	for name, test := range map[string]struct {
		call
		want bool
	}{
		"a terminal":                   {call{terminal: true}, true},
		"a pipe":                       {call{}, false},
		"NO_COLOR":                     {call{terminal: true, variables: map[string]string{"NO_COLOR": "1"}}, false},
		"an empty NO_COLOR":            {call{terminal: true, variables: map[string]string{"NO_COLOR": ""}}, true},
		"a terminal without colour":    {call{terminal: true, variables: map[string]string{"TERM": "dumb"}}, false},
		"always":                       {call{args: []string{"--color=always"}, variables: map[string]string{"NO_COLOR": "1"}}, true},
		"never":                        {call{args: []string{"--color=never"}, terminal: true}, false},
		"auto":                         {call{args: []string{"--color=auto"}, terminal: true}, true},
		"programs read without colour": {call{args: []string{"-o", "json", "--color=always"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.args = append([]string{"owners", "namespace/" + ns.Name}, test.args...)
			got := do(t, ns, test.call)
			if got.code != cmd.ExitDone {
				t.Fatalf("ended with %d: %s", got.code, got.errOut)
			}
			if coloured := strings.Contains(got.out, "\x1b["); coloured != test.want {
				t.Errorf("coloured: %t\n%s", coloured, got.out)
			}
		})
	}
}

// TestOwnersAgree compares what owners tells of every object of an MCPServer with what package ownership, which the
// operator goes by, says of each field.
func TestOwnersAgree(t *testing.T) {
	s := newScene(t, harness.Replicas(1, 1), harness.InlineAuthorization)
	s.others(t)
	var answer printers.Ownership
	if err := json.Unmarshal([]byte(must(t, s.Namespace, cmd.ExitDone, "owners", "mcpserver/web", "-o", "json").out), &answer); err != nil {
		t.Fatal(err)
	}
	objects, err := s.ObjectsOf(t.Context(), web)
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Objects) != len(objects) || len(objects) < 12 {
		t.Errorf("it tells of %d objects, there are %d", len(answer.Objects), len(objects))
	}
	compared := 0
	for _, told := range answer.Objects {
		for _, object := range objects {
			if object.GetKind() != told.Kind || object.GetName() != told.Name {
				continue
			}
			for _, field := range told.Fields {
				if field.PartOf != "" {
					continue
				}
				var got, want []string
				for _, o := range field.Owners {
					got = append(got, o.Manager+" "+o.Operation+" "+o.Subresource)
				}
				for _, o := range ownership.Owners(object, field.Path) {
					want = append(want, o.Manager+" "+string(o.Operation)+" "+o.Subresource)
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("%s %s %s is owned by %v, it says %v", told.Kind, told.Name, field.Path, want, got)
				}
				compared++
			}
		}
	}
	if compared < 200 {
		t.Errorf("only %d fields were compared", compared)
	}
}

func TestThePluginKnowsTheChildrenThatTheOperatorMakes(t *testing.T) {
	s := newScene(t, harness.InlineAuthorization)
	objects, err := s.ObjectsOf(t.Context(), web)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, child := range inventory.Children() {
		if !child.ByContent {
			known[child.Kind.String()+" "+child.Name(web)] = true
		}
	}
	for _, component := range []harness.Component{harness.RunConfig, harness.InlineAuthz} {
		// The plugin lists ConfigMaps, whose names tell their content.
		name := objects[component].GetName()
		if !inventory.HasDigest(name) || !slices.Contains(inventory.Servers(managers.ConfigMap, name), web) {
			t.Errorf("the name of %s is not one that the plugin looks for", name)
		}
		delete(objects, component)
	}
	for component, object := range objects {
		if component != harness.ServerItself && !known[object.GroupVersionKind().GroupKind().String()+" "+object.GetName()] {
			t.Errorf("the operator makes %s %s, of which the plugin does not know", object.GetKind(), object.GetName())
		}
	}
	if len(known) != len(objects)-1 {
		t.Errorf("the plugin knows %d children, the operator has made %d", len(known), len(objects)-1)
	}
}

func TestWhatStandsInTheWayIsNotShownAsAChild(t *testing.T) {
	ns := env.Namespace(t)
	kubectl := ns.Kubectl(t)
	kubectl.Run(t, "create", "serviceaccount", "web-sa")
	ns.Create(t, harness.Server(web, "stdio"))
	got := must(t, ns, cmd.ExitDone, "owners", "mcpserver/web")
	if strings.Contains(got.out, "serviceaccount") || !strings.Contains(got.errOut, "serviceaccount/web-sa") {
		t.Errorf("out:\n%s\nerr:\n%s", got.out, got.errOut)
	}
}

// The values of Secrets are not shown unless that is asked for, nor are they where kubectl keeps them.
func TestValuesOfASecretAreNotShownUnasked(t *testing.T) {
	ns := env.Namespace(t)
	ns.Kubectl(t).Do(t, harness.Call{Args: []string{"apply", "-f", "-"}, Input: "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\ndata: {password: aHVudGVyMg==}\n"})
	for _, format := range []string{"", "wide", "tree", "html", "yaml", "json"} {
		if got := must(t, ns, cmd.ExitDone, "owners", "secret/key", "-o", format); strings.Contains(got.out, "aHVudGVyMg") || !strings.Contains(got.out, "kubectl-client-side-apply") {
			t.Errorf("-o %s shows\n%s", format, got.out)
		}
	}
	if got := must(t, ns, cmd.ExitDone, "owners", "secret/key", "--show-secrets"); !strings.Contains(got.out, "password: aHVudGVyMg==") {
		t.Errorf("it shows\n%s", got.out)
	}
}

func TestOwnersErrors(t *testing.T) {
	ns := env.Namespace(t)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no argument":    {[]string{"owners"}, "name an object"},
		"no such object": {[]string{"owners", "deployment/none"}, `deployments.apps "none" not found`},
		"no such kind":   {[]string{"owners", "nonsense/none"}, "the server doesn't have a resource type \"nonsense\""},
		"no such format": {[]string{"owners", "deployment/none", "-o", "xml"}, `unknown output format "xml"`},
		"no such colour": {[]string{"owners", "deployment/none", "--color=red"}, `--color is "red"`},
		"no such flag":   {[]string{"owners", "--nonsense"}, "unknown flag: --nonsense"},
		"no such verb":   {[]string{"nonsense"}, `unknown command "nonsense"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := must(t, ns, cmd.ExitFailed, test.args...); !strings.Contains(got.errOut, test.want) || got.out != "" {
				t.Errorf("it says %q and %q, want %q", got.out, got.errOut, test.want)
			}
		})
	}
}

// TestAsPlugin runs the program as users do.
func TestAsPlugin(t *testing.T) {
	ns := env.Namespace(t)
	kubectl := ns.Kubectl(t)
	kubectl.Run(t, "create", "configmap", "things", "--from-literal=a=1")
	if out := kubectl.Run(t, "freehold", "owners", "configmap/things"); !strings.Contains(out, "kubectl-create  Update     ") {
		t.Errorf("it says\n%s", out)
	}
}
