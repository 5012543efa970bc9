// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
)

const annotateWeb = "kubectl annotate -n shop mcpserver.toolhive.stacklok.dev/web"

func contestedWeb(paths ...string) *apply.ConflictError {
	conflict := &apply.ConflictError{Refusal: refusalOf(apply.ClassConflict)}
	for _, path := range paths {
		conflict.Fields = append(conflict.Fields, apply.FieldConflict{Path: path})
	}
	return conflict
}

// The commands that settle a conflict name each field; one that yields keeps what is left to others already, and one
// that asks for the same as before asks anew.
func TestCommandsThatSettleAConflict(t *testing.T) {
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
			annotations: map[string]string{vocabulary.Yield: ".spec.paused  service/mcp-web:.spec.ports[port=80,protocol=\"TCP\"]"},
			take:        replicas, yield: replicas + `,.spec.paused,service/mcp-web:.spec.ports[port=80,protocol="TCP"]`,
		},
		"the field was left to others": {
			conflict: contestedWeb(".spec.replicas"), annotations: map[string]string{vocabulary.Yield: replicas},
			take: replicas, yield: replicas,
		},
		"something else was taken": {
			conflict: contestedWeb(".spec.replicas"), annotations: map[string]string{vocabulary.Take: image},
			take: replicas, yield: replicas,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			server.Annotations = test.annotations
			p := &pass{server: server, key: key("web")}
			message := p.describe(test.conflict)
			for _, part := range []string{
				"To take it: " + annotateWeb + " --overwrite 'freehold.dev/take=" + test.take + "'. ",
				"To leave it to them: " + annotateWeb + " --overwrite 'freehold.dev/yield=" + test.yield + "'. ",
			} {
				if !strings.Contains(message, part) {
					t.Errorf("the message is\n%s\nwithout\n%s", message, part)
				}
			}
		})
	}
}

// A request to take is carried out once. The same text again is no new request.
func TestCommandThatTakesOnceMore(t *testing.T) {
	server := newServer("web")
	server.Annotations = map[string]string{vocabulary.Take: "deployment.apps/web:.spec.replicas"}
	p := &pass{server: server, key: key("web")}
	want := "To take it: " + annotateWeb + " freehold.dev/take- && " +
		annotateWeb + " --overwrite 'freehold.dev/take=deployment.apps/web:.spec.replicas'. "
	if message := p.describe(contestedWeb(".spec.replicas")); !strings.Contains(message, want) {
		t.Errorf("the message is\n%s\nwithout\n%s", message, want)
	}
}

// What stands in a message is run as it is. Keys of lists may hold anything.
func TestShellQuoting(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skipf("there is no shell to ask: %v", err)
	}
	for _, text := range []string{
		"", "a b", `a=.b[name="c"]`, "it's", "''", `'; touch x; '`, "$(id) `id` $HOME ${x} !!", `\`, `\'`, "*?~#&|<>", "a\nb", "é\t",
	} {
		out, err := exec.CommandContext(t.Context(), shell, "-c", "printf %s "+shellQuoted(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q is %q for a shell (%v)", text, out, err)
		}
	}
}
