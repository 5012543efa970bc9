// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// state is one state that a referenced object had: value is what it adds to the content.
type state struct {
	apply.Reference
	value int
}

// histories are the states that referenced objects had, each object's in their order.
type histories struct {
	objects [3][]state
	version int
}

// names of the objects; the last one is of a kind without a generation.
var names = [3]string{"config/a", "config/b", "configmap/c"}

func newHistories() *histories {
	h := &histories{version: 7} // So that the number of digits changes soon.
	for i := range h.objects {
		h.begin(i, 0)
	}
	return h
}

// begin creates an object, or deletes it and creates it again.
func (h *histories) begin(i, value int) {
	h.version++
	now := state{apply.Reference{Name: names[i], UID: types.UID(fmt.Sprintf("uid-%d", h.version)), ResourceVersion: strconv.Itoa(h.version)}, value}
	if h.hasGeneration(i) {
		now.Generation = 1
	}
	h.objects[i] = append(h.objects[i], now)
}

// edit changes an object: its spec, or its status alone.
func (h *histories) edit(i, value int, spec bool) {
	h.version++
	now := h.objects[i][len(h.objects[i])-1]
	now.ResourceVersion = strconv.Itoa(h.version)
	if spec {
		now.value = value
	}
	if spec && h.hasGeneration(i) {
		now.Generation++
	}
	h.objects[i] = append(h.objects[i], now)
}

func (*histories) hasGeneration(i int) bool { return !strings.HasPrefix(names[i], "configmap/") }

// claimKey is where in an object's history a reference is; -1 for nowhere.
func (h *histories) place(i int, r apply.Reference) int {
	return slices.IndexFunc(h.objects[i], func(s state) bool {
		return s.UID == r.UID && s.Generation == r.Generation && (s.Generation > 0 || s.ResourceVersion == r.ResourceVersion)
	})
}

// operator is one that sees each object in some state of its history.
type operator struct {
	applier *apply.Applier
	sees    [3]int
}

// renders returns an operator's intent, and the references that it is rendered from.
func (h *histories) renders(sees [3]int) (image string, references apply.References) {
	image = "a:"
	for i, at := range sees {
		now := h.objects[i][at]
		image += strconv.Itoa(now.value)
		references = append(references, now.Reference)
	}
	return image, references
}

// Two operators see the same objects, each with its own delays. Whatever the order in which they write, the object never goes
// back to an older state of a reference, its content is the one of the references that it tells of, and once both have seen
// everything the object is as the last states want it and nothing more is written.
func TestReferencesNeverGoBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, h := newStore(t, content, referring), newHistories()
		operators := [2]*operator{}
		restart := func(o *operator) { o.applier = apply.NewApplierWithClock(nil, s.clock) }
		for i := range operators {
			operators[i] = &operator{}
			restart(operators[i])
		}
		var recorded [3]int
		// pass lets an operator write, and checks what comes of it.
		pass := func(o *operator) {
			image, references := h.renders(o.sees)
			stale := false
			for i, r := range references {
				stale = stale || s.stored != nil && h.place(i, r) < recorded[i]
			}
			s.applier = o.applier
			out := s.sync(web(image), from(references))
			switch {
			case stale && apply.ClassOf(out.Err) != apply.ClassStale:
				rt.Fatalf("%s from %v, behind %q: error %v, want class Stale", out.Action, references, s.stored.Annotations[referencesAnnotation], out.Err)
			case !stale && (out.Err != nil || s.image() != image):
				rt.Fatalf("the image is %s, want %s; error %v", s.image(), image, out.Err)
			}
			written, ok := apply.ParseReferences(s.stored.Annotations[referencesAnnotation])
			if !ok || len(written) != len(names) {
				rt.Fatalf("the object tells of %q", s.stored.Annotations[referencesAnnotation])
			}
			for i, r := range written {
				now := h.place(i, r)
				if now < recorded[i] {
					rt.Fatalf("%s goes back from state %d to state %d", r.Name, recorded[i], now)
				}
				recorded[i] = now
			}
			if image, _ := h.renders(recorded); s.image() != image {
				rt.Fatalf("the image is %s, that of %v is %s", s.image(), written, image)
			}
		}
		object, value, which := rapid.IntRange(0, len(names)-1), rapid.IntRange(0, 2), rapid.IntRange(0, len(operators)-1)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			o := operators[which.Draw(rt, "operator")]
			switch rapid.SampledFrom([]string{"edit", "status", "anew", "see", "see", "see", "pass", "pass", "pass", "restart"}).Draw(rt, "step") {
			case "edit":
				h.edit(object.Draw(rt, "object"), value.Draw(rt, "value"), true)
			case "status":
				h.edit(object.Draw(rt, "object"), 0, false)
			case "anew":
				h.begin(object.Draw(rt, "object"), value.Draw(rt, "value"))
			case "see":
				i := object.Draw(rt, "object")
				o.sees[i] = rapid.IntRange(o.sees[i], len(h.objects[i])-1).Draw(rt, "state")
			case "pass":
				pass(o)
			case "restart":
				restart(o)
			}
		}
		for _, o := range operators {
			for i := range o.sees {
				o.sees[i] = len(h.objects[i]) - 1
			}
			pass(o)
		}
		s.requests = nil
		for _, o := range operators {
			pass(o)
		}
		if len(s.requests) > 0 {
			rt.Fatalf("after all is written, %q is sent", s.requests)
		}
	})
}
