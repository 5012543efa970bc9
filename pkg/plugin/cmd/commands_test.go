// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/shelltest"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/request"
)

// Every command that the plugin prints calls kubectl and nothing else, whatever users have written into names, paths and
// annotations.
func TestPrintedCommandsTakeNothingForAProgram(t *testing.T) {
	for _, text := range shelltest.Hostile() {
		expectPrintedCommands(t, text, `.metadata.annotations["`+text+`"]`)
	}
}

// FuzzPrintedCommands: the same of any names, and of any value of an annotation, to which the fields that are contested are added so that
// the operator reads them.
func FuzzPrintedCommands(f *testing.F) {
	all := strings.Join(shelltest.Hostile(), "")
	f.Add(all, `.metadata.annotations["`+all+`"]`)
	for _, annotation := range []string{"", ".spec.replicas,helm", `.a["`, ".a]", `x"y`, "deployment.apps/web:"} {
		f.Add("web", annotation)
	}
	f.Fuzz(func(t *testing.T, text, annotation string) {
		if strings.Contains(text+annotation, "\x00") {
			t.Skip("no argument has a NUL in it")
		}
		expectPrintedCommands(t, text, annotation)
	})
}

func expectPrintedCommands(t *testing.T, text, annotation string) {
	t.Helper()
	namespace, name := "-n"+text, text
	server := &v1beta1.MCPServer{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	server.Annotations = map[string]string{v1beta1.AnnotationTake: text, v1beta1.AnnotationYield: annotation}
	contested := printers.ContestedField{Object: "deployment.apps/web", Path: `.spec.x[name="` + text + `"]`, Leavable: true}
	preview := &printers.ServerTakeover{Contested: []printers.ContestedField{contested}}
	s := planner{client: &cluster.Client{}}
	(&takeoverOptions{viewer: viewer{planner: s}}).settlements(preview, server)
	field := request.Selector{Object: contested.Object, Path: contested.Path}
	wanted := func(annotation string) string {
		before := server.Annotations[annotation]
		value := request.Write(append(request.Read(before), field))
		alone := request.New(field.String())
		if read := request.New(value); !read.Cut && !request.New(before).Cut && slices.Equal(alone.Entries, []request.Selector{field}) && !slices.Contains(read.Entries, field) {
			t.Errorf("the operator does not read %s in %q", field, value)
		}
		return annotation + "=" + value
	}
	held := cluster.Caller{}.Held(&v1beta1.MCPServer{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Annotations: map[string]string{v1beta1.AnnotationTake: text},
	}}, v1beta1.AnnotationTake)
	_, unannotate, _ := strings.Cut(held.Error(), "remove it first: ")
	// Verbs that take MCPServers alone know which kind is meant. kubectl does not: another product may have a kind of that name.
	mcpserver, qualified := "mcpserver/"+name, "mcpserver.toolhive.stacklok.dev/"+name
	_, owners, _ := strings.Cut(givenUpOf(t, s, server).Error(), "; see ")
	for _, test := range []struct {
		command string
		want    []string
	}{
		{preview.Take, []string{"annotate", "-n", namespace, qualified, "--overwrite", wanted(v1beta1.AnnotationTake)}},
		{preview.Yield, []string{"annotate", "-n", namespace, qualified, "--overwrite", wanted(v1beta1.AnnotationYield)}},
		{s.commandFor("take", server), []string{"freehold", "take", "-n", namespace, mcpserver}},
		{s.commandFor("yield", server), []string{"freehold", "yield", "-n", namespace, mcpserver}},
		{owners, []string{"freehold", "owners", "-n", namespace, qualified}},
		{unannotate, []string{"annotate", "-n", namespace, qualified, v1beta1.AnnotationTake + "-"}},
	} {
		if diff := cmp.Diff([][]string{test.want}, shelltest.Calls(t, test.command)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.command, diff)
		}
	}
}

// givenUpOf returns the error about a field that the operator does not own.
func givenUpOf(t *testing.T, s planner, server *v1beta1.MCPServer) error {
	t.Helper()
	o := &yielding{annotator: annotator{planner: s}}
	effects, err := o.givenUp(server, &desired.Plan{}, request.Selector{Object: "deployment.apps/web", Path: ".spec.x"})
	if err == nil {
		t.Fatalf("it gives up %q", effects)
	}
	return err
}
