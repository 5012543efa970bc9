// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

const permitAll = "permit(principal, action, resource);"

// What would take the operator's memory or time is refused at little cost, however it is given.
func TestWhatWouldTakeTheMemoryIsRefusedAtLittleCost(t *testing.T) {
	attribute := func(value string) string {
		return `[{"uid":{"type":"T","id":"x"},"parents":[],"attrs":{"a":` + value + `}}]`
	}
	nested := func(depth int) string { return strings.Repeat("[", depth) + "0" + strings.Repeat("]", depth) }
	var same []string
	for i := range 15_000 {
		same = append(same, fmt.Sprintf("[%d,%d]", i, 99_999-i))
	}
	list := func(text string) string { return "[" + text + "]" }
	entities := map[string]struct{ text, want string }{
		"deep lists":             {attribute(nested(5000)), "nested more than"},
		"deep lists, many":       {attribute(list(strings.Join(slicesOf(nested(90), 900), ","))), "lists and objects in them"},
		"a long list":            {attribute(list(strings.Join(slicesOf("[0]", 40_000), ","))), "holds more than"},
		"lists of the same sum":  {attribute(list(strings.Join(same, ","))), "holds more than"},
		"many entities":          {list(strings.Join(slicesOf(`{"uid":{},"attrs":{}}`, 10_000), ",")), "lists and objects in them"},
		"a long text":            {attribute(`"` + strings.Repeat("x", mostEntityBytes) + `"`), "bytes"},
		"a long list in objects": {attribute(list(strings.Join(slicesOf(`{"k":{"l":[0]}}`, 2000), ","))), "holds more than"},
	}
	frugal := func(name, want string, parse func() error) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		err := parse()
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 64 || took > 10*time.Second {
			t.Errorf("%s took %d MiB and %s", name, mib, took)
		}
	}
	for name, c := range entities {
		frugal(name, c.want, func() error {
			_, err := CedarAuthz(&Cedar{Policies: []string{permitAll}, EntitiesJSON: c.text})
			return err
		})
		document, err := json.Marshal(map[string]any{
			"version": AuthzVersion, "type": AuthzTypeCedar, "cedar": map[string]any{"policies": []string{permitAll}, "entities_json": c.text},
		})
		if err != nil {
			t.Fatal(err)
		}
		frugal(name+" in a document", c.want, func() error {
			_, err := ParseAuthz(string(document), ClaimMapping{})
			return err
		})
	}
	const head = "version: v\ntype: cedarv1\ncedar: {policies: ['" + permitAll + "']}\nx: "
	for name, text := range map[string]string{
		"a wide document":    head + "[" + strings.Repeat("0,", 200_000) + "]",
		"many lines":         head + strings.Repeat("\n- 0", 110_000),
		"a deep document":    head + strings.Repeat("[", 110_000),
		"an alias and much":  head + "[&a 0,*a," + strings.Repeat("0,", 200_000) + "]",
		"much of one string": head + "'" + strings.Repeat("x", mostDocumentBytes) + "'",
	} {
		frugal(name, "is the most", func() error {
			_, err := ParseAuthz(text, ClaimMapping{})
			return err
		})
	}
}

// What people may write is far from the limits, such as two thousand users in groups.
func TestLargeConfigurationsAreFarFromTheLimits(t *testing.T) {
	var entities []string
	for i := range 2000 {
		entities = append(entities, fmt.Sprintf(
			`{"uid":{"type":"User","id":"user-%d"},"parents":[{"type":"Group","id":"group-%d"}],"attrs":{"teams":["a","b"]}}`, i, i%50,
		))
	}
	policies := slicesOf(`permit(principal in Group::"group-1", action == Action::"call_tool", resource == Tool::"weather");`, 500)
	got, err := CedarAuthz(&Cedar{Policies: policies, EntitiesJSON: "[" + strings.Join(entities, ",\n") + "]"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseAuthz(string(got.document), ClaimMapping{})
	if err != nil || again.Type != AuthzTypeCedar {
		t.Errorf("got %+v and error %v", again, err)
	}
}

func slicesOf(text string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = text
	}
	return all
}
