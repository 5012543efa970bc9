// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"strings"
	"testing"
)

// TestALookAtEventsIsOfOneStatefulSetAndRare judges lists of events by an operator.
func TestALookAtEventsIsOfOneStatefulSetAndRare(t *testing.T) {
	const one = "limit=100&fieldSelector=reason%3DFailedCreate%2Cregarding.uid%3Du%2CreportingController%3Dstatefulset-controller"
	for name, test := range map[string]struct {
		first, second string
		// wait is how much later the second one is, in seconds, and wrong a part of what is said of it.
		wait  int
		wrong string
	}{
		"two looks":             {one, one, 10, ""},
		"two StatefulSets":      {one, strings.Replace(one, "uid%3Du", "uid%3Dw", 1), 1, ""},
		"too soon":              {one, one, 2, "after the one before"},
		"without a limit":       {one, strings.TrimPrefix(one, "limit=100&"), 10, "more events than"},
		"of all in a namespace": {one, "limit=100", 10, "more events than"},
	} {
		r := newReads([]Run{{Namespaces: []string{"ns"}, Started: start}})
		look := func(query string, wait int) string {
			return r.judge(request(on("events.k8s.io", "events", ""), asks("list", query), after(wait)))
		}
		if got := look(test.first, 0); got != "" {
			t.Errorf("%s: the first is %q", name, got)
		}
		if got := look(test.second, test.wait); (got == "") != (test.wrong == "") || !strings.Contains(got, test.wrong) {
			t.Errorf("%s: the second is %q, want %q", name, got, test.wrong)
		}
	}
}
