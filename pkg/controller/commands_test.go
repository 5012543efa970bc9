// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/shelltest"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/printable"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/status"
)

const annotateWeb = "kubectl annotate -n shop mcpserver.toolhive.stacklok.dev/web"

func contestedWeb(paths ...string) *apply.ConflictError {
	conflict := &apply.ConflictError{Refusal: refusalOf(apply.ClassConflict)}
	for _, path := range paths {
		conflict.Fields = append(conflict.Fields, apply.FieldConflict{Path: path})
	}
	return conflict
}

func viewOf(server *v1beta1.MCPServer) *observed.Snapshot {
	return &observed.Snapshot{Server: server, Key: key("web")}
}

// carriedOut is what is remembered of a request to take.
func carriedOut(take string) string { return request.Record{Request: request.Digest(take)}.String() }

// The commands that settle a conflict name each field; one that yields keeps what is left to others already, and one
// that asks for the same as before asks anew.
func TestCommandsThatSettleAConflictNameEachField(t *testing.T) {
	const (
		replicas = "deployment.apps/web:.spec.replicas"
		image    = `deployment.apps/web:.spec.template.spec.containers[name="mcp"].image`
	)
	both := contestedWeb(".spec.replicas", `.spec.template.spec.containers[name="mcp"].image`)
	for name, test := range map[string]struct {
		conflict    *apply.ConflictError
		annotations map[string]string
		take, yield string
	}{
		"one field": {
			conflict: contestedWeb(".spec.replicas"), take: replicas, yield: replicas,
		},
		"several fields": {
			conflict: both, take: replicas + "," + image, yield: replicas + "," + image,
		},
		"something is left to others": {
			conflict:    contestedWeb(".spec.replicas"),
			annotations: map[string]string{v1beta1.AnnotationYield: ".spec.paused  service/mcp-web:.spec.ports[port=80,protocol=\"TCP\"]"},
			take:        replicas, yield: replicas + `,.spec.paused,service/mcp-web:.spec.ports[port=80,protocol="TCP"]`,
		},
		"the field was left to others": {
			conflict: contestedWeb(".spec.replicas"), annotations: map[string]string{v1beta1.AnnotationYield: replicas},
			take: replicas, yield: replicas,
		},
		"something else was taken": {
			conflict: contestedWeb(".spec.replicas"), annotations: map[string]string{v1beta1.AnnotationTake: image},
			take: replicas, yield: replicas,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			server.Annotations = test.annotations
			v := viewOf(server)
			message := describe(v, test.conflict)
			for _, part := range []string{
				"Take ownership: " + annotateWeb + " --overwrite 'freehold.dev/take=" + test.take + "'. ",
				"Leave it: " + annotateWeb + " --overwrite 'freehold.dev/yield=" + test.yield + "'. ",
			} {
				if !strings.Contains(message, part) {
					t.Errorf("the message is\n%s\nwithout\n%s", message, part)
				}
			}
		})
	}
}

// A request to take is carried out once. The same text again is no new request, and another one is made by one write: an operator need
// not see what is between two.
func TestACommandThatTakesOnceMoreIsARequestOfItsOwn(t *testing.T) {
	server := newServer("web")
	const asked = "deployment.apps/web:.spec.replicas"
	server.Annotations = map[string]string{v1beta1.AnnotationTake: asked, v1beta1.AnnotationTakeRecord: carriedOut(asked)}
	v := viewOf(server)
	want := "Take ownership: " + annotateWeb + " --overwrite 'freehold.dev/take=,deployment.apps/web:.spec.replicas'. "
	if message := describe(v, contestedWeb(".spec.replicas")); !strings.Contains(message, want) {
		t.Errorf("the message is\n%s\nwithout\n%s", message, want)
	}
}

// What a condition prints is run as it is, whatever users put into names, keys of lists and annotations.
func TestPrintedCommandsTakeNothingForAProgram(t *testing.T) {
	for _, text := range shelltest.Hostile() {
		// A message is one line, so a line feed at the end of a command is not passed on.
		text = strings.TrimRight(text, "\n")
		field, before := ".spec["+text+"]", `.metadata.annotations["`+text+`"]`
		server := newServer("web")
		asked := "deployment.apps/web:" + field
		server.Annotations = map[string]string{
			v1beta1.AnnotationYield: before, v1beta1.AnnotationTake: asked, v1beta1.AnnotationTakeRecord: carriedOut(asked),
		}
		v := viewOf(server)
		v.Key = cache.NewObjectName("-n"+text, "web")
		object := observed.ServerRef(v.Key).String()
		message := printable.Text(describe(v, contestedWeb(field)))
		take := between(t, message, "Take ownership: ", ". Leave it: ")
		yield := between(t, message+"\x00", ". Leave it: ", ".\x00")
		want := map[string][][]string{
			take:  {{"annotate", "-n", v.Key.Namespace, object, "--overwrite", "freehold.dev/take=,deployment.apps/web:" + field}},
			yield: {{"annotate", "-n", v.Key.Namespace, object, "--overwrite", "freehold.dev/yield=deployment.apps/web:" + field + "," + before}},
		}
		for command, calls := range want {
			if diff := cmp.Diff(calls, shelltest.Calls(t, command)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", command, diff)
			}
		}
	}
}

// A server that ToolHive has made is told how to hand it over.
func TestPrintedApprovalTakesNothingForAProgram(t *testing.T) {
	v := &observed.Snapshot{Key: cache.NewObjectName("-n $(touch pwned)", "web")}
	want := [][]string{{"annotate", "-n", v.Key.Namespace, observed.ServerRef(v.Key).String(), "--overwrite", "freehold.dev/takeover=approved"}}
	if diff := cmp.Diff(want, shelltest.Calls(t, approval(v.Key))); diff != "" {
		t.Errorf("%s (-want +got):\n%s", approval(v.Key), diff)
	}
}

func between(t *testing.T, text, begin, end string) string {
	t.Helper()
	_, rest, begun := strings.Cut(text, begin)
	found, _, ended := strings.Cut(rest, end)
	if !begun || !ended {
		t.Fatalf("there is nothing between %q and %q in %s", begin, end, text)
	}
	return found
}

// However many fields are contested, the message is short, and its commands settle all of them.
func TestMessageAboutManyFieldsIsShort(t *testing.T) {
	var paths []string
	for i := range 140 {
		paths = append(paths, fmt.Sprintf(`.spec.template.spec.containers[name="mcp"].env[name="VARIABLE_%d"].value`, i))
	}
	message := describe(viewOf(newServer("web")), contestedWeb(paths...))
	for _, part := range []string{
		"(+139 more fields)", "Take ownership: kubectl freehold take -n shop mcpserver/web. ", "Leave it: kubectl freehold yield -n shop mcpserver/web.",
	} {
		if !strings.Contains(message, part) {
			t.Errorf("the message is\n%s\nwithout\n%s", message, part)
		}
	}
	if len(message) > 1024 {
		t.Errorf("the message has %d bytes", len(message))
	}
}

// The worst of names leave the commands whole.
func TestMessageWithLongNamesIsWhole(t *testing.T) {
	long := strings.Repeat("x", 253)
	hostile := strings.Repeat("'\x01", 5000)
	server := newServer("web")
	server.Annotations = map[string]string{v1beta1.AnnotationYield: strings.Repeat(".spec.paused ", 1200)}
	v := viewOf(server)
	v.Key = cache.NewObjectName(long[:63], long)
	conflict := contestedWeb(`.spec.template.spec.containers[name="mcp"].env[name="` + hostile + `"].value`)
	conflict.Object.Name, conflict.Fields[0].Owners = long, []ownership.Owner{{Manager: long[:128], Subresource: "scale"}}
	message := printable.Text(describe(v, conflict))
	if len(message) > status.MaxMessage || !strings.Contains(message, ". Leave it: ") || !strings.HasSuffix(message, ".") {
		t.Errorf("%d bytes: %s", len(message), message)
	}
}

// Leaving fields to others is offered where that can be asked for.
func TestYieldIsOfferedForWhatCanBeYielded(t *testing.T) {
	for name, test := range map[string]struct {
		object apply.ObjectRef
		paths  []string
		want   bool
	}{
		"a Deployment's":          {webDeployment, []string{".spec.replicas"}, true},
		"a selector":              {webDeployment, []string{".spec.selector"}, false},
		"below one":               {webDeployment, []string{`.metadata.ownerReferences[uid="x"].name`}, false},
		"one can and one cannot":  {webDeployment, []string{".spec.replicas", ".spec.selector"}, false},
		"named alike":             {webDeployment, []string{".spec.selectorX"}, true},
		"a ConfigMap's":           {apply.NewObjectRef(managers.ConfigMap, "shop", "web-runconfig"), []string{".data.runconfig.json"}, false},
		"of the MCPServer itself": {observed.ServerRef(key("web")), []string{".status.message"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			conflict := contestedWeb(test.paths...)
			conflict.Object = test.object
			message := describe(viewOf(newServer("web")), conflict)
			if got := strings.Contains(message, v1beta1.AnnotationYield); got != test.want || !strings.Contains(message, v1beta1.AnnotationTake) {
				t.Errorf("the message is\n%s", message)
			}
		})
	}
}
