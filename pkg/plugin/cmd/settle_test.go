// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/request"
)

// The fields that another field manager gives other values in these tests.
var (
	otherImage = content{"containers": []any{content{"name": "toolhive", "image": "example.com/proxy:mine"}}}

	serverRef = cluster.ServerRef("shop", "web")
)

// TestTakeAgain: a request that was carried out is made again by one write, whether the operator runs or not, and it is one that the
// operator has not carried out. While that waits for the operator, it stays as it is.
func TestTakeAgain(t *testing.T) {
	w := newWorld(t, nil)
	w.contest(otherImage)
	asked := func() string { return w.server().Annotations[v1beta1.AnnotationTake] }
	w.must(ExitDone, "take", "web", "--yes", "--wait=false", known)
	first := asked()
	for range 3 {
		w.answer()
		before := asked()
		_, errOut := w.must(ExitTimeout, "take", "web", "--yes", "--timeout=300ms", known)
		if !strings.Contains(errOut, "written, but the operator has not answered within 300ms") || len(w.writes) != 1 {
			t.Errorf("it has sent %q, and says %s", w.writes, errOut)
		}
		again := asked()
		if again == "" || request.ReadRecord(w.server().Annotations[v1beta1.AnnotationTakeRecord]).IsOf(again) || again == before {
			t.Fatalf("%q, which was carried out, was made %q", before, again)
		}
		if want := request.Write(request.Read(first)); request.Write(request.Read(again)) != want {
			t.Errorf("%q asks for something else than %s", again, want)
		}
		w.must(ExitDone, "take", "web", "--yes", "--wait=false", known)
		if got := asked(); got != again {
			t.Errorf("%q, which waits for the operator, was made %q", again, got)
		}
	}
	// An answer to the text that is left over from another time is none to the request.
	w.answer()
	w.apply("freehold-requests", serverRef, content{"metadata": content{"annotations": content{v1beta1.AnnotationTakeRecord: "{}"}}})
	if out, _ := w.must(ExitTimeout, "take", "web", "--yes", "--timeout=300ms", known); strings.Contains(out, "took it") {
		t.Errorf("it shows an answer that was there before: %s", out)
	}
}
