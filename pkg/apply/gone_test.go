// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// departed is an API server after versions have left the definition of the objects. While managedFields have an entry of one of them, it
// refuses each apply, and ignores each edit that leaves such an entry.
type departed struct {
	*store
	versions []string
	// named counts the refusals, of which each names one of the versions that there are.
	named int
}

// depart has field managers of an object recorded in versions that then leave.
func depart(t *testing.T, versions ...string) *departed {
	t.Helper()
	d := &departed{}
	d.store = created(t, content, func(to *target) {
		stamped(to)
		send := to.Edits.Send
		to.Edits.Send = func(ctx context.Context, namespace, name string, patch []byte, options metav1.PatchOptions) (*deployment, error) {
			before, version := d.stored, d.version
			answer, err := send(ctx, namespace, name, patch, options)
			if err == nil && len(d.left()) > 0 {
				d.stored, d.version = before, version
				answer = d.live()
			}
			return answer, err
		}
	}, web("a:1"))
	d.stored.Generation = 1
	d.sync(web("a:1"), nil)
	d.requests = nil
	for _, version := range versions {
		d.record("author-of-"+version, "apps/"+version)
	}
	d.versions = versions
	d.refuse = func(request string) error {
		left := d.left()
		if !strings.HasPrefix(request, "apply ") || len(left) == 0 {
			return nil
		}
		d.named++
		return raw("request to convert CR to an invalid group/version: " + left[d.named%len(left)])
	}
	return d
}

// record adds a field manager that owns a label.
func (d *departed) record(manager, version string) {
	d.behind(func(live *deployment) {
		foreign(live, manager, `{"f:metadata":{"f:labels":{"f:app":{}}}}`)
		live.ManagedFields[len(live.ManagedFields)-1].APIVersion = version
	})
}

// left are the versions of entries that have left.
func (d *departed) left() (found []string) {
	for _, entry := range d.stored.ManagedFields {
		if version := strings.TrimPrefix(entry.APIVersion, "apps/"); slices.Contains(d.versions, version) && !slices.Contains(found, entry.APIVersion) {
			found = append(found, entry.APIVersion)
		}
	}
	return found
}

func TestTheAnswerNamesTheVersionThatIsGone(t *testing.T) {
	if version := apply.GoneVersion(answered(t, "gone-version")); version != "toolhive.stacklok.dev/v1alpha1" {
		t.Errorf("it is %q", version)
	}
	for _, other := range []string{"duplicate-key", "webhook-down"} {
		if version := apply.GoneVersion(answered(t, other)); version != "" {
			t.Errorf("%s names version %q", other, version)
		}
	}
}

// dropped is the change of the entry of an author.
func dropped(version string) string {
	return `Repaired .metadata.managedFields from "author-of-` + version + `"`
}

func TestEntriesOfAVersionThatIsGoneAreDropped(t *testing.T) {
	d := depart(t, "v1alpha1")
	d.record("author", "apps/v1")
	d.ends(d.sync(web("a:2"), nil), apply.ActionApplied, "", dropped("v1alpha1"))
	d.expect("an entry is dropped", "apply content", "edit ownership", "apply content")
	d.expectOwners(".metadata.labels.app", content.Name, "author")
	if d.image() != "a:2" || d.stored.Labels["app"] != "web" {
		t.Errorf("the object is %+v", d.stored)
	}
	d.ends(d.sync(web("a:2"), nil), apply.ActionNone, "")
	d.expect("it is repaired")
}

// The API server names one version at a time, and drops nothing before all are known.
func TestEntriesOfSeveralVersionsThatAreGoneAreDroppedAtOnce(t *testing.T) {
	d := depart(t, "v1alpha1", "v1alpha2")
	d.ends(d.sync(web("a:2"), nil), apply.ActionApplied, "", dropped("v1alpha1"), dropped("v1alpha2"))
	d.expect("entries are dropped", "apply content", "edit ownership", "apply content", "edit ownership", "apply content")
	d.expectOwners(".metadata.labels.app", content.Name)
}

// The writer gets its own claim back, and what it yields is left to others all the same.
func TestClaimsAreMadeAgainWhenEntriesAreDropped(t *testing.T) {
	t.Run("the writer's own", func(t *testing.T) {
		d := depart(t, "v1alpha1")
		ownership.ApplyEntry(d.stored, content.Name, "").APIVersion = "apps/v1alpha1"
		out := d.sync(web("a:2"), nil)
		if out.Err != nil || !slices.ContainsFunc(out.Claims, func(c apply.ClaimChange) bool { return c.Cause == apply.CauseRestored }) {
			t.Errorf("claims changed: %v, error %v", out.Claims, out.Err)
		}
		d.expect("the claim is restored", "apply content", "edit ownership", "edit ownership", "apply content")
		d.expectOwners(webImage, content.Name)
	})
	t.Run("inheriting, and nothing else to write", func(t *testing.T) {
		d := depart(t, "v1alpha1")
		d.record("author", "apps/v1")
		inherit := func(req *apply.Request) {
			req.Inherit = &apply.Inheritance{From: func(owner ownership.Owner) bool { return owner.Manager == "author" }, Heirs: []ownership.Heir{
				{Holder: ownership.Holder{Manager: content.Name, APIVersion: "apps/v1"}, Covers: content.Claim.Covers},
			}}
		}
		d.ends(d.sync(web("a:1"), inherit), apply.ActionClaimed, "", dropped("v1alpha1"), `Inherited .metadata.labels.app from "author"`)
		d.expect("the edit is ignored at first", "edit ownership", "apply content", "edit ownership", "edit ownership")
		d.expectOwners(".metadata.labels.app", content.Name)
	})
	t.Run("yielding", func(t *testing.T) {
		d := depart(t, "v1alpha1")
		if out := d.sync(web("a:2"), yieldImage); out.Err != nil {
			t.Fatal(out.Err)
		}
		d.expectOwners(webImage)
		if d.image() != "a:1" {
			t.Errorf("the image is %s", d.image())
		}
	})
}

// What cannot be repaired is an error of the API server like any other.
func TestWhatNamesAGoneVersionAndCannotBeRepairedIsRefused(t *testing.T) {
	t.Run("no entry has the version", func(t *testing.T) {
		s := created(t, content, stamped, web("a:1"))
		s.refuse = func(string) error { return raw("request to convert CR to an invalid group/version: apps/v1alpha1") }
		s.ends(s.sync(web("a:2"), nil), apply.ActionRefused, apply.ClassTransient)
		s.expect("there is nothing to drop", "apply content")
	})
	t.Run("the edit is forbidden", func(t *testing.T) {
		d := depart(t, "v1alpha1")
		names := d.refuse
		d.refuse = func(request string) error {
			if request == "edit ownership" {
				return answered(t, "forbidden")
			}
			return names(request)
		}
		d.ends(d.sync(web("a:2"), nil), apply.ActionRefused, apply.ClassForbidden)
		d.expect("it may not be edited", "apply content", "edit ownership")
	})
}

func TestAnEditThatTheAPIServerIgnoresChangesNoOwner(t *testing.T) {
	d := depart(t, "v1alpha1")
	d.record("author", "apps/v1")
	out := d.applier.TakeHeld(t.Context(), d.writer, apply.Request{
		Object: webRef, Config: web("a:1"), Observed: apply.Observed{Live: d.live()},
		Ownership: apply.Ownership{Take: func(from ownership.Owner, _ fieldpath.Path) bool { return from.Manager == "author" }},
	})
	d.ends(out, apply.ActionRefused, apply.ClassTransient)
	d.expectOwners(".metadata.labels.app", content.Name, "author-of-v1alpha1", "author")
}
