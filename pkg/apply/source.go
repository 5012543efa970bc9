// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Source is the object that an intent was rendered from, and its references. The zero value is none. Annotations on the
// written object record it, see Target.Source and Target.References; they change only together with the content.
type Source struct {
	// UID of the source object.
	UID types.UID
	// Generation of the source object.
	Generation int64
	// References are the other objects that the intent was rendered from, in any order. Nil for none.
	References References
}

// String returns the value of the annotation Target.Source, which has only the source object.
func (s Source) String() string { return fmt.Sprintf("%s/%d", s.UID, s.Generation) }

// ParseSource parses the value of the annotation Target.Source. It returns false for any text that String does not
// return.
func ParseSource(text string) (s Source, ok bool) {
	uid, number, found := strings.Cut(text, "/")
	if !found || uid == "" {
		return Source{}, false
	}
	generation, err := strconv.ParseInt(number, 10, 64)
	if err != nil || generation < 0 {
		return Source{}, false
	}
	s = Source{UID: types.UID(uid), Generation: generation}
	if s.String() != text { // such as a/+1 or a/01
		return Source{}, false
	}
	return s, true
}

// sourceOf returns the source that the object was last written from, if that annotation records it.
func sourceOf(live metav1.Object, annotation string) (Source, bool) {
	return ParseSource(live.GetAnnotations()[annotation])
}

// staleAgainst reports whether the object was written from a newer generation of the same source. An object
// that records no source, or another one, is not newer: it has lost its annotation or outlived its source.
func (s Source) staleAgainst(live metav1.Object, annotation string) bool {
	written, ok := sourceOf(live, annotation)
	return ok && written.UID == s.UID && written.Generation > s.Generation
}

// Ahead reports whether one of the object's annotations has a newer generation of the source.
func (s Source) Ahead(live metav1.Object, annotations ...string) bool {
	return slices.ContainsFunc(annotations, func(annotation string) bool { return s.staleAgainst(live, annotation) })
}

// Unlike returns the source in the object's annotation if it is neither this source nor an earlier generation of it, or
// an empty string.
func (s Source) Unlike(live metav1.Object, annotation string) string {
	if written, ok := sourceOf(live, annotation); ok && written.UID == s.UID && written.Generation <= s.Generation {
		return ""
	}
	return live.GetAnnotations()[annotation]
}

// adopts reports whether the object records another source and is not controlled by this one: the writer takes it over
// from a predecessor.
func (s Source) adopts(live metav1.Object, annotation string) bool {
	written, ok := sourceOf(live, annotation)
	controller := metav1.GetControllerOfNoCopy(live)
	return ok && written.UID != s.UID && (controller == nil || controller.UID != s.UID)
}
