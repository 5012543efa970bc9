// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// versions is an events.EventRecorder that keeps which version of what is told what.
type versions struct{ told []string }

func (v *versions) Eventf(regarding, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	object := access(regarding)
	kind := regarding.GetObjectKind().GroupVersionKind()
	v.told = append(v.told, fmt.Sprintf("%s %s/%s %s at %s: %s %s %s %s", kind.String(), object.GetNamespace(), object.GetName(),
		object.GetUID(), object.GetResourceVersion(), eventType, reason, action, fmt.Sprintf(note, args...)))
}

// The same news regard the same version, whichever the MCPServer has by now, so that they become a series; other news and
// those of other MCPServers do not.
func TestSameNewsRegardTheSameVersion(t *testing.T) {
	heard := &versions{}
	r := newEventRecorder(heard)
	server := newServer("web")
	tell := func(uid types.UID, version, reason, note string) {
		server.UID, server.ResourceVersion = uid, version
		r.Eventf(server, nil, "Warning", reason, "Apply", "%s", note)
	}
	tell("a", "1", "Conflict", "100% theirs")
	tell("a", "2", "Conflict", "100% theirs")
	tell("a", "3", "Conflict", "another field")
	tell("a", "4", "Invalid", "100% theirs")
	tell("a", "5", "Conflict", "100% theirs")
	tell("b", "6", "Conflict", "100% theirs") // deleted and made again
	const what = "toolhive.stacklok.dev/v1beta1, Kind=MCPServer shop/web "
	if diff := cmp.Diff([]string{
		what + "a at 1: Warning Conflict Apply 100% theirs",
		what + "a at 1: Warning Conflict Apply 100% theirs",
		what + "a at 3: Warning Conflict Apply another field",
		what + "a at 4: Warning Invalid Apply 100% theirs",
		what + "a at 1: Warning Conflict Apply 100% theirs",
		what + "b at 6: Warning Conflict Apply 100% theirs",
	}, heard.told); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// A note that is too long for the API server is cut, between characters.
func TestLongNewsAreCut(t *testing.T) {
	for name, test := range map[string]struct{ note, want string }{
		"just short enough":     {strings.Repeat("a", 1024), strings.Repeat("a", 1024)},
		"too long":              {strings.Repeat("a", 1025), strings.Repeat("a", 1021) + "..."},
		"within of a character": {"a" + strings.Repeat("é", 600), "a" + strings.Repeat("é", 510) + "..."},
	} {
		heard := &versions{}
		server := newServer("web")
		newEventRecorder(heard).Eventf(server, nil, "Warning", "Conflict", "Apply", "%s", test.note)
		if got := heard.told[0]; !strings.HasSuffix(got, " Apply "+test.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Names of field managers and paths stand in notes. They cannot steer the terminal of the one who lists events.
func TestNewsArePrintable(t *testing.T) {
	heard := &versions{}
	newEventRecorder(heard).Eventf(newServer("web"), nil, "Warning", "Conflict", "Apply", "%s", "a\nb\x1b[2J\u202e")
	if got := heard.told[0]; !strings.HasSuffix(got, ` Apply a\nb\x1b[2J\u202e`) {
		t.Errorf("it is %q", got)
	}
}
