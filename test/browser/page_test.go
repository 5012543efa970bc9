// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// recorded is what ToolHive has left of an MCPServer, with who wrote it.
const recorded = "../harness/testdata/toolhive/edited.yaml"

// reports are those of the recorded objects, and of one in which somebody has put what a browser could take for something else than text,
// or cannot break into lines.
func reports(t *testing.T, elsewhere string) []*fieldowners.Report {
	t.Helper()
	text, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	objects := []*unstructured.Unstructured{hostile(elsewhere)}
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(strings.ReplaceAll(string(text), "${NAME}", "web")))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.GetKind() != "" {
			objects = append(objects, object)
		}
	}
	// The MCPServer comes first, as the plugin has it.
	objects[0], objects[1] = objects[1], objects[0]
	var all []*fieldowners.Report
	for _, object := range objects {
		report, err := fieldowners.New(object, writers.Schema())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, report)
	}
	return all
}

func hostile(elsewhere string) *unstructured.Unstructured {
	long := strings.Repeat("wide", 60)
	values := []string{
		`</td></tr></table><script>window.evil = "markup"; fetch("` + elsewhere + `/markup")</script>`,
		`</script><script>window.evil = "end"</script>`,
		`<img src="` + elsewhere + `/image" onerror="window.evil = 'image'"><link rel="stylesheet" href="` + elsewhere + `/style">`,
		`" onmouseover="window.evil = 'attribute'" style="background: url(` + elsewhere + `/background)`,
		`{{.}} ${window.evil = "template"} javascript:window.evil = "address"`,
		long,
	}
	data, owned := map[string]any{}, make([][]string, 3)
	for i, value := range values {
		key := fmt.Sprintf("key-%d", i)
		data[key] = value
		owned[i%3] = append(owned[i%3], fmt.Sprintf(`"f:%s":{}`, key))
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": data,
		"metadata": map[string]any{"name": "a-name-that-is-as-long-as-names-can-be." + strings.Repeat("wide-", 40) + "end", "namespace": "tools"},
	}}
	var entries []metav1.ManagedFieldsEntry
	for i, manager := range []string{`<script>window.evil = "manager"</script>`, long[:128], "kubectl-edit"} {
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", Time: &metav1.Time{Time: noon.Add(-time.Hour)},
			FieldsV1: metav1.NewFieldsV1(`{"f:data":{` + strings.Join(owned[i], ",") + `}}`),
		})
	}
	object.SetManagedFields(entries)
	return object
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// views are how the page is looked at. The width of paper is that of A4 without the margins that Chromium leaves.
var views = map[string]View{
	"screen":        {1280, 800, "screen", "light"},
	"dark":          {1280, 800, "screen", "dark"},
	"narrow":        {360, 740, "screen", "light"},
	"print":         {718, 1047, "print", "light"},
	"print of dark": {718, 1047, "print", "dark"},
}

// TestPage looks at the page of kubectl freehold owners in each view. Nothing is asked for over the network, whatever is in the
// objects; nothing is complained about; and a reader sees all of it.
func TestPage(t *testing.T) {
	var visits atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	t.Cleanup(elsewhere.Close)
	var page bytes.Buffer
	all := reports(t, elsewhere.URL)
	if err := (printers.Page{Now: noon}).Print(&page, all); err != nil {
		t.Fatal(err)
	}
	tab := Open(t, page.String())
	for name, view := range views {
		t.Run(name, func(t *testing.T) {
			tab.Look(t, view)
			seen := Eval[layout](t, tab, looking)
			seen.check(t, view, all)
		})
	}
	t.Run("choosing", func(t *testing.T) {
		tab.Look(t, views["screen"])
		choose(t, tab)
	})
	t.Run("paper", func(t *testing.T) { checkPaper(t, tab.Print(t, "dark"), all) })

	if evil := Eval[string](t, tab, `String(window.evil)`); evil != "undefined" {
		t.Errorf("what is in an object ran as a script: %s", evil)
	}
	if got := tab.Requests(); len(got) != 1 || got[0] != tab.Address {
		t.Errorf("asked for %v, want the page alone", got)
	}
	if got := tab.Complaints(); len(got) > 0 {
		t.Errorf("the browser complains: %v", got)
	}
	// Even a script that got in would reach nobody, and would not run.
	tried := Eval[map[string]string](t, tab, fmt.Sprintf(breaking, elsewhere.URL))
	for what, came := range tried {
		if !strings.HasPrefix(came, "refused") {
			t.Errorf("%s: %s, want it refused", what, came)
		}
	}
	if len(tried) < 4 || visits.Load() > 0 {
		t.Errorf("tried %v; another server was visited %d times", tried, visits.Load())
	}
}
