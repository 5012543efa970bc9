// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/shell/shelltest"
)

// Every command that the plugin prints calls kubectl and nothing else, whatever users have written into names, paths and
// annotations.
func TestPrintedCommandsTakeNothingForAProgram(t *testing.T) {
	for _, text := range shelltest.Hostile() {
		namespace, name := "-n"+text, text
		server := &v1beta1.MCPServer{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		server.Annotations = map[string]string{v1beta1.AnnotationTake: text, v1beta1.AnnotationYield: `.metadata.annotations["` + text + `"]`}
		preview := &printers.ServerTakeover{Contested: []printers.ContestedField{{Object: "deployment.apps/web", Path: `.spec.x[name="` + text + `"]`, Yieldable: true}}}
		(&takeoverOptions{}).settlements(preview, server)
		wanted := func(annotation string) string {
			fields := append(request.Read(server.Annotations[annotation]), request.Selector{
				Object: preview.Contested[0].Object, Path: preview.Contested[0].Path,
			})
			return annotation + "=" + request.Write(fields)
		}
		held := cluster.HeldError{Namespace: namespace, Server: name, Annotation: v1beta1.AnnotationTake, Value: text}
		_, unannotate, _ := strings.Cut(held.Error(), "remove it first: ")
		mcpserver := "mcpserver/" + name
		for _, test := range []struct {
			command string
			want    []string
		}{
			{preview.Take, []string{"annotate", "-n", namespace, mcpserver, "--overwrite", wanted(v1beta1.AnnotationTake)}},
			{preview.Yield, []string{"annotate", "-n", namespace, mcpserver, "--overwrite", wanted(v1beta1.AnnotationYield)}},
			{settling("take", server), []string{"freehold", "take", "-n", namespace, mcpserver}},
			{settling("yield", server), []string{"freehold", "yield", "-n", namespace, mcpserver}},
			{unannotate, []string{"annotate", "-n", namespace, mcpserver, v1beta1.AnnotationTake + "-"}},
		} {
			if diff := cmp.Diff([][]string{test.want}, shelltest.Calls(t, test.command)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.command, diff)
			}
		}
	}
}
