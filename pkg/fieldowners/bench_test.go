// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldowners_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
)

// BenchmarkNew looks at a Deployment with 200 managed fields of 8 managers. The promise is that owners answers in under
// 200 ms, of which reading the schema, once for each run of the plugin, takes about 60.
func BenchmarkNew(b *testing.B) {
	o := large(b, 8, 25)
	report, err := fieldowners.New(o, kubernetes)
	if err != nil {
		b.Fatal(err)
	}
	owned := 0
	for _, f := range report.Fields {
		if f.Leaf && f.State == fieldowners.Owned {
			owned++
		}
	}
	if owned < 200 {
		b.Fatalf("only %d fields are owned", owned)
	}
	for b.Loop() {
		if _, err := fieldowners.New(o, kubernetes); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(owned), "fields")
}

// large makes a Deployment with some managers, each of which owns a container with environment variables.
func large(t testing.TB, managers, fieldsEach int) *unstructured.Unstructured {
	t.Helper()
	var containers strings.Builder
	var entries []entry
	for m := range managers {
		name := fmt.Sprintf("c%d", m)
		fmt.Fprintf(&containers, "      - name: %s\n        env:\n", name)
		var env []string
		for v := range fieldsEach {
			fmt.Fprintf(&containers, "        - {name: V%d, value: v}\n", v)
			env = append(env, fmt.Sprintf(`"k:{\"name\":\"V%d\"}":{".":{},"f:name":{},"f:value":{}}`, v))
		}
		entries = append(entries, entry{"manager-" + name, fmt.Sprintf(
			`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"%s\"}":{".":{},"f:name":{},"f:env":{%s}}}}}}}`,
			name, strings.Join(env, ","))})
	}
	return object(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: large}\nspec:\n  template:\n    spec:\n      containers:\n"+
		containers.String(), entries...)
}
