// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Nothing panics; twice the same input gives twice the same bytes, whatever the order of maps; Render refuses what Validate refuses, for
// the same thing first; what is rendered holds nothing of a ConfigMap; and it is rendered as a whole or not at all.
func TestRandomConfigurationsAreRenderedAsAWholeOrNotAtAll(t *testing.T) {
	rendered, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		in := generator{rt}.input()
		result, problems := Render(in)
		again := in
		again.Spec = reordered(rt, in.Spec)
		again.Bundles = maps.Clone(in.Bundles)
		resultAgain, problemsAgain := Render(again)
		if diff := cmp.Diff(problems, problemsAgain); diff != "" {
			rt.Fatalf("the second time the problems differ:\n%s", diff)
		}
		if diff := cmp.Diff(marshal(rt, result), marshal(rt, resultAgain)); diff != "" {
			rt.Fatalf("the second time the result differs:\n%s", diff)
		}
		if (result == nil) == (len(problems) == 0) {
			rt.Fatalf("got result %v and problems %v, want exactly one of them", result, problems)
		}
		if err := Validate(in.Spec); err != nil && (len(problems) == 0 || problems[0] != (Problem{v1beta1.ReasonInvalidConfig, err.Error()})) {
			rt.Fatalf("Validate says %q, and Render %v", err, problems)
		} else if err == nil && slices.ContainsFunc(problems, func(p Problem) bool {
			return p.Reason == v1beta1.ReasonInvalidConfig && strings.HasPrefix(p.Message, root+".issuer ")
		}) {
			rt.Fatalf("Validate accepts an issuer that Render refuses: %v", problems)
		}
		Advisories(in.Spec)
		names := ConfigMaps(in.Spec)
		if !slices.IsSorted(names) {
			rt.Fatal("names are not sorted")
		}
		if result == nil {
			refused++
			return
		}
		rendered++
		if (result.CAChecksum != "") != (len(names) > 0) {
			rt.Fatalf("the checksum is %q for the ConfigMaps %q", result.CAChecksum, names)
		}
		written := marshal(rt, result)
		for line := range strings.SplitSeq(certificateA+certificateB, "\n") {
			if line != "" && !strings.HasPrefix(line, "-----") && strings.Contains(written, line) {
				rt.Fatalf("the result holds a part of a ConfigMap: %s", line)
			}
		}
	})
	if rendered == 0 || refused == 0 {
		t.Errorf("%d configurations were rendered and %d refused: the generator is too narrow", rendered, refused)
	}
}

// reordered is a copy with maps that were filled in another order.
func reordered(t *rapid.T, spec *v1beta1.EmbeddedAuthServerConfig) *v1beta1.EmbeddedAuthServerConfig {
	refill := func(m map[string]string) map[string]string {
		if m == nil {
			return nil
		}
		keys := rapid.Permutation(slices.Sorted(maps.Keys(m))).Draw(t, "keys")
		filled := map[string]string{}
		for _, key := range keys {
			filled[key] = m[key]
		}
		return filled
	}
	c := spec.DeepCopy()
	for i := range c.UpstreamProviders {
		if o := c.UpstreamProviders[i].OIDCConfig; o != nil {
			o.AdditionalAuthorizationParams, o.AdditionalTokenParams = refill(o.AdditionalAuthorizationParams), refill(o.AdditionalTokenParams)
		}
		if o := c.UpstreamProviders[i].OAuth2Config; o != nil {
			o.AdditionalAuthorizationParams, o.AdditionalTokenParams = refill(o.AdditionalAuthorizationParams), refill(o.AdditionalTokenParams)
		}
	}
	return c
}

func marshal(t *rapid.T, value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
