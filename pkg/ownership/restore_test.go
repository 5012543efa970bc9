// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// What a holder that has lost its claim gets back, of an object with a mark of its own, two fields of its claim,
// a label of somebody else's and a status.
func TestALostClaimIsRestored(t *testing.T) {
	const (
		ofMark  = `"f:metadata":{"f:annotations":{"f:mark":{}}}`
		ofLabel = `"f:labels":{"f:theirs":{}}`
	)
	mark := fieldpath.MakePathOrDie("metadata", "annotations", "mark")
	claim := fieldpath.NewSet(
		fieldpath.MakePathOrDie("spec", "image"), fieldpath.MakePathOrDie("spec", "port"),
		fieldpath.MakePathOrDie("spec", "wanted"), // which the object does not have
	)
	all := fieldpath.NewSet(
		mark, fieldpath.MakePathOrDie("metadata", "labels", "theirs"),
		fieldpath.MakePathOrDie("spec", "image"), fieldpath.MakePathOrDie("spec", "port"), fieldpath.MakePathOrDie("spec", "more"),
		fieldpath.MakePathOrDie("status"), fieldpath.MakePathOrDie("status", "ready"),
	)
	const marked, imaged, ported, more, labelled = ".metadata.annotations.mark", ".spec.image", ".spec.port", ".spec.more", ".metadata.labels.theirs"
	const nobody = ` from ""`
	for name, test := range map[string]struct {
		before []metav1.ManagedFieldsEntry
		moved  []string
		after  map[string][]string
	}{
		"nobody owns anything": {
			moved: []string{marked + nobody, imaged + nobody, ported + nobody},
			after: map[string][]string{
				"me Apply": {marked, imaged, ported}, ownership.BeforeFirstApply + " Update": {labelled, more},
			},
		},
		"others own what is theirs": {
			before: []metav1.ManagedFieldsEntry{managed("you", update, "", `{"f:metadata":{`+ofLabel+`}}`)},
			moved:  []string{marked + nobody, imaged + nobody, ported + nobody},
			after:  map[string][]string{"me Apply": {marked, imaged, ported}, "you Update": {labelled}},
		},
		"a copy was written, and everything is the copier's": {
			before: []metav1.ManagedFieldsEntry{managed("velero", update, "",
				`{"f:metadata":{"f:annotations":{"f:mark":{}},`+ofLabel+`},"f:spec":{"f:image":{},"f:port":{},"f:more":{}}}`)},
			moved: []string{marked + ` from "velero"`, imaged + ` from "velero"`, ported + ` from "velero"`},
			after: map[string][]string{"me Apply": {marked, imaged, ported}, "velero Update": {labelled, more}},
		},
		"a third manager has taken a field of the claim": {
			before: []metav1.ManagedFieldsEntry{
				managed("velero", update, "", `{`+ofMark+`,"f:spec":{"f:image":{}}}`),
				managed("kubectl", update, "", `{"f:spec":{"f:port":{}}}`),
			},
			moved: []string{marked + ` from "velero"`, imaged + ` from "velero"`},
			after: map[string][]string{"me Apply": {marked, imaged}, "kubectl Update": {ported}},
		},
		"a field of the claim that the copier and a third manager share": {
			before: []metav1.ManagedFieldsEntry{
				managed("velero", update, "", `{`+ofMark+`,"f:spec":{"f:port":{}}}`),
				managed("kubectl", update, "", `{"f:spec":{"f:port":{}}}`),
			},
			moved: []string{marked + ` from "velero"`, imaged + nobody, ported + ` from "velero"`},
			after: map[string][]string{"me Apply": {marked, imaged}, "kubectl Update": {ported}},
		},
		"a second owner of the mark beside the holder": {
			before: []metav1.ManagedFieldsEntry{
				managed("me", apply, "", `{`+ofMark+`,"f:spec":{"f:image":{},"f:port":{}}}`), managed("argocd", apply, "", `{`+ofMark+`}`),
			},
			moved: []string{marked + ` from "argocd"`},
			after: map[string][]string{"me Apply": {marked, imaged, ported}},
		},
		"nothing is lost": {
			before: []metav1.ManagedFieldsEntry{managed("me", apply, "", `{`+ofMark+`,"f:spec":{"f:image":{},"f:port":{}}}`)},
			after:  map[string][]string{"me Apply": {marked, imaged, ported}},
		},
		"others own everything": {
			before: []metav1.ManagedFieldsEntry{
				managed("a", update, "", `{"f:spec":{"f:image":{},"f:port":{}}}`), managed("me", apply, "", `{`+ofMark+`}`),
			},
			after: map[string][]string{"a Update": {imaged, ported}, "me Apply": {marked}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := seen(test.before...)
			edit, err := ownership.Restore(obj, holder, later, mark, claim, all)
			expectEdit(t, obj, edit, err, test.moved, test.after)
			again, err := ownership.Restore(made(t, obj, edit), holder, later, mark, claim, all)
			if again != nil || err != nil {
				t.Errorf("a second time: %v, %v; want nothing", again, err)
			}
		})
	}
}
