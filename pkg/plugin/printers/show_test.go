// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// reportOf makes a ConfigMap with keys that managers own, one after the other, each for longer than the one before.
func reportOf(t testing.TB, keys int, managers ...string) *fieldowners.Report {
	t.Helper()
	data := map[string]any{}
	owned := make([][]string, len(managers))
	for i := range keys {
		key := fmt.Sprintf("key-%03d", i)
		data[key] = "value"
		owned[i%len(managers)] = append(owned[i%len(managers)], fmt.Sprintf(`"f:%s":{}`, key))
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "things"}, "data": data,
	}}
	var entries []metav1.ManagedFieldsEntry
	for i, manager := range managers {
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:data":{` + strings.Join(owned[i], ",") + `}}`),
			Time:     &metav1.Time{Time: noon.Add(-time.Duration(i+1) * 90 * time.Second)},
		})
	}
	object.SetManagedFields(entries)
	report, err := fieldowners.New(object, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestOwnersStandInTheMargin(t *testing.T) {
	var out bytes.Buffer
	reports := []*fieldowners.Report{reportOf(t, 3, "freehold-runconfig", "kubectl-edit")}
	if err := (printers.OwnerColumn{Now: noon}).Print(&out, reports); err != nil {
		t.Fatal(err)
	}
	want := `configmap/things
MANAGER             OPERATION  AGE  │
                                    │ apiVersion: v1
                                    │ data:
freehold-runconfig  Update     90s  │   key-000: value
kubectl-edit        Update     3m   │   key-001: value
freehold-runconfig  Update     90s  │   key-002: value
                                    │ kind: ConfigMap
                                    │ metadata:
                                    │   name: things
`
	if out.String() != want {
		t.Errorf("it prints\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	terminal := &printers.Terminal{To: &out, Colours: true}
	if err := (printers.OwnerColumn{Now: noon, Palette: printers.Palette{On: true}}).Print(terminal, reports); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"\x1b[32mfreehold-runconfig  Update     90s  \x1b[0m", "\x1b[33mkubectl-edit        Update     3m   \x1b[0m"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is not in\n%q", line, out.String())
		}
	}
}

func TestTreeWraps(t *testing.T) {
	var out bytes.Buffer
	if err := (printers.Tree{Now: noon}).Print(&out, []*fieldowners.Report{reportOf(t, 60, "kubectl-edit")}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) < 7 {
		t.Errorf("it is not wrapped:\n%s", out.String())
	}
	for _, line := range lines {
		if n := len([]rune(line)); n > 100 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	if n := strings.Count(out.String(), ".key-"); n != 60 {
		t.Errorf("%d of 60 fields are shown", n)
	}
}

func TestAValueIsShownOnOneLine(t *testing.T) {
	for _, test := range []struct {
		value any
		short bool
		want  string
	}{
		{nil, true, "-"},
		{"text", true, "text"},
		{"", true, `""`},
		{"a\nb", true, `"a\nb"`},
		{"a\x1b[2J\u202eb", true, `"a\u001b[2J\u202eb"`},
		{[]any{"\u202e"}, true, `["\u202e"]`},
		{int64(3), true, "3"},
		{true, true, "true"},
		{[]any{"a", int64(1)}, true, `["a",1]`},
		{map[string]any{"a": nil}, true, `{"a":null}`},
		{strings.Repeat("ä", 40), true, strings.Repeat("ä", 40)},
		{strings.Repeat("ä", 41), true, strings.Repeat("ä", 19) + "…" + strings.Repeat("ä", 20)},
		{strings.Repeat("ä", 41), false, strings.Repeat("ä", 41)},
	} {
		if got := printers.Value(test.value, test.short); got != test.want {
			t.Errorf("%v is shown as %s, want %s", test.value, got, test.want)
		}
	}
}

func TestADiffOfNothingIsEmpty(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "X", "metadata": map[string]any{"resourceVersion": "1"}}}
	other := object.DeepCopy()
	other.SetResourceVersion("2")
	other.SetGeneration(7)
	if text, err := printers.Unified("x", object, other, "me"); text != "" || err != nil {
		t.Errorf("it differs: %v\n%s", err, text)
	}
}

// BenchmarkMargin prints a ConfigMap with 200 fields of 8 managers.
func BenchmarkMargin(b *testing.B) {
	reports := []*fieldowners.Report{reportOf(b, 200, "a", "b", "c", "d", "e", "f", "g", "h")}
	column := printers.OwnerColumn{Now: noon, Palette: printers.Palette{On: true}, Wide: true}
	terminal := &printers.Terminal{To: io.Discard, Colours: true}
	for b.Loop() {
		if err := column.Print(terminal, reports); err != nil {
			b.Fatal(err)
		}
	}
}
