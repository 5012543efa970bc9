// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// inheritAll ends all claims of others, and gives them to the writer.
func inheritAll(req *apply.Request) {
	req.Inherit = &apply.Inheritance{
		From: func(owner ownership.Owner) bool { return owner.Manager != content.Name },
		Heirs: []ownership.Heir{{
			Holder: ownership.Holder{Manager: content.Name, APIVersion: "apps/v1"},
			Covers: func(fieldpath.Path) bool { return true },
		}},
	}
}

const inheritedImage = "Inherited " + webImage + ` from "kubectl-set"`

func TestAnInheritanceEndsTheClaimsOfOthersFirst(t *testing.T) {
	s := seized(t)
	s.ends(s.sync(web("a:2"), inheritAll), apply.ActionApplied, "", inheritedImage)
	s.expect("the claims of others end first", "edit ownership", "apply content")
	s.expectOwners(webImage, content.Name)
	s.ends(s.sync(web("a:2"), inheritAll), apply.ActionNone, "")
	s.expect("there is nothing to inherit any more")
}

// A write that was refused because of the claims of other managers is sent when these claims end.
func TestARefusedWriteIsSentWhenClaimsEnd(t *testing.T) {
	s := seized(t)
	s.ends(s.sync(web("a:2"), nil), apply.ActionRefused, apply.ClassConflict)
	s.expect("a conflict")
	s.ends(s.sync(web("a:2"), inheritAll), apply.ActionApplied, "", inheritedImage)
	s.expect("their claims end", "edit ownership", "apply content")
	if conflicts := s.applier.Conflicts(); len(conflicts) != 0 {
		t.Errorf("conflicts %v stand", conflicts)
	}
}

// An inheritance is carried out even if the object matches the intent: other managers may own the same values, or other fields.
func TestAnInheritanceNeedsNoConflict(t *testing.T) {
	s := created(t, content, stamped, web("a:1"))
	s.update("kubectl-pause", func(d *deployment) { d.Spec.Paused = true })
	s.ends(s.sync(web("a:1"), nil), apply.ActionNone, "")
	s.expect("there is nothing to write")
	s.ends(s.sync(web("a:1"), inheritAll), apply.ActionApplied, "", `Inherited .spec.paused from "kubectl-pause"`)
	s.expect("what is inherited and not wanted goes", "edit ownership", "apply content")
	if s.stored.Spec.Paused {
		t.Error("it is still paused")
	}
}
