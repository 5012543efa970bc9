// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/printable"
)

// hostile would clear the screen, forge a line, turn the text around and colour it, if it were printed as it is.
const hostile = "x\x1b[2J\x1b[31m\u009b\r\nREADY\u202eDLROW\u0007\ufdd3\u200b"

// harmlessText is as long as hostile when it is printed, so that tables break their lines in the same places.
var harmlessText = strings.Repeat("h", utf8.RuneCountInString(printable.Text(hostile)))

// everything prints, by a name, all that the plugin prints for people, with a text of a user's in each place for one.
func everything(t *testing.T, text string, palette printers.Palette) map[string]func(to io.Writer) error {
	t.Helper()
	object := func(value string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": text, "namespace": text},
			"data": map[string]any{"a": value, "b": text},
		}}
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: text, Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:b":{}}}`),
		}})
		return o
	}
	report, err := fieldowners.New(object(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	reports := []*fieldowners.Report{report}
	contested := []printers.ContestedField{{
		Object: text, Path: text, Writer: text, Owners: []printers.Manager{{Manager: text, Operation: text}}, Theirs: text, Ours: map[string]any{text: text},
	}}
	changes := []printers.ObjectTakeover{{Object: text, When: text, Action: printers.ActionChange, Changes: []printers.FieldChange{{Path: text, Before: text, After: text, Why: text}}}}
	running := []cluster.Running{{Product: text, Object: text, Namespace: text, How: text}}
	return map[string]func(to io.Writer) error{
		"column": func(to io.Writer) error {
			return printers.OwnerColumn{Palette: palette, Now: noon, Wide: true}.Print(to, reports)
		},
		"tree": func(to io.Writer) error { return printers.Tree{Palette: palette, Now: noon}.Print(to, reports) },
		"html": func(to io.Writer) error { return printers.Page{Now: noon}.Print(to, reports) },
		"diff": func(to io.Writer) error {
			diff, err := printers.Unified(text, object("a"), object("b"), text)
			return errors.Join(err, printers.Differences{Differences: []printers.Difference{{Diff: diff}}}.Print(to, palette, noon, false))
		},
		"conflicts": func(to io.Writer) error {
			return printers.Conflicts{Servers: []printers.ServerConflicts{
				{Namespace: text, Name: text, Fields: contested}, {Namespace: text, Name: text, Told: &printers.Told{Reason: text, Message: text}},
			}, Configs: []printers.ConfigConflicts{{Namespace: text, Object: text, Fields: contested, End: text, Clear: "kubectl"}}}.Print(to, palette, noon, true)
		},
		"takeover": func(to io.Writer) error {
			return printers.Takeovers{Operators: running, Servers: []printers.ServerTakeover{{
				Namespace: text, Name: text, Standing: "ToolHive", Contested: contested, Objects: changes, Notices: []string{text},
				Blockers: []printers.Blocker{{Object: text, Reason: text, Message: text}},
				Pods:     []printers.PodsTakeover{{Of: text, Object: text, Replaced: true, Because: []string{text}}},
			}}}.Print(to, palette, noon, true)
		},
		"handback": func(to io.Writer) error {
			return printers.Handback{
				Namespace: text, Object: text, Generation: 2, Objects: append(changes, printers.ObjectTakeover{Object: text, Action: printers.ActionNone}),
				Blockers: []printers.Blocker{{Object: text, Reason: text, Message: text}},
			}.Print(to, palette)
		},
		"operators": func(to io.Writer) error { printers.Operators(to, palette, running); return nil },
	}
}

// Whatever users write into objects, the terminal is told nothing but text and the colours of the palette, and no line is
// there that would not be with other words.
func TestNothingSteersTheTerminal(t *testing.T) {
	colours := strings.NewReplacer("\x1b[0m", "", "\x1b[1m", "", "\x1b[2m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[34m", "")
	for _, coloured := range []bool{false, true} {
		harmless := everything(t, harmlessText, printers.Palette{On: coloured})
		for name, write := range everything(t, hostile, printers.Palette{On: coloured}) {
			t.Run(name, func(t *testing.T) {
				var out, want bytes.Buffer
				for to, write := range map[*bytes.Buffer]func(io.Writer) error{&out: write, &want: harmless[name]} {
					terminal := &printers.Terminal{To: to, Colours: coloured}
					if err := write(terminal); err != nil {
						t.Fatal(err)
					}
					if err := terminal.Flush(); err != nil {
						t.Fatal(err)
					}
				}
				text := out.String()
				if strings.Contains(text, "\x1b[31m\\u009b") {
					t.Errorf("a value is coloured:\n%q", text)
				}
				if coloured {
					text = colours.Replace(text)
				}
				if printable.Lines(text) != text {
					t.Errorf("it prints\n%q", text)
				}
				if !strings.Contains(text, "READY") {
					t.Errorf("the value is not there:\n%s", text)
				}
				if got, want := strings.Count(text, "\n"), strings.Count(want.String(), "\n"); got != want {
					t.Errorf("%d lines, want %d:\n%s", got, want, text)
				}
			})
		}
	}
}

// Tables fit tableWidth unless they are wide, and say the same.
func TestTablesFit(t *testing.T) {
	heads := []string{"OBJECT", "FIELD", "NOW"}
	rows := [][]string{
		{"deployment.apps/web", `.spec.template.spec.containers[name="toolhive"].env[name="A"].valueFrom`, strings.Repeat("x", 40)},
		{"", "", "a sentence of many words, which says why something is as it is, and who has to change what so that it is not"},
		{"service/web"},
	}
	show := func(wide bool) string {
		var out strings.Builder
		if err := printers.Table(&out, printers.Palette{}, heads, rows, wide); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	fitted, whole := show(false), show(true)
	for line := range strings.Lines(fitted) {
		if length := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); length > 120 {
			t.Errorf("%d characters: %s", length, line)
		}
	}
	if lines := strings.Count(whole, "\n"); lines != 4 {
		t.Errorf("%d lines of the wide table:\n%s", lines, whole)
	}
	letters := func(text string) string {
		sorted := []byte(strings.Join(strings.Fields(text), ""))
		slices.Sort(sorted)
		return string(sorted)
	}
	for _, cell := range slices.Concat(rows...) {
		if !strings.Contains(fitted, cell) {
			t.Errorf("%q is not whole", cell)
		}
	}
	if letters(fitted) != letters(whole) {
		t.Errorf("the fitted table says something else:\n%s", fitted)
	}
	if rows = rows[2:]; show(false) != show(true) {
		t.Errorf("a narrow table is changed:\n%s", show(false))
	}
}

// A text may be written in pieces that end within a character.
func TestTerminalTakesPieces(t *testing.T) {
	const text = "Grüße\u202e\xff 世界 \ufdd3red\ufdd0\xe4\xb8"
	for _, coloured := range []bool{false, true} {
		want := `Grüße\u202e\xff 世界 \ufdd3red\ufdd0\xe4\xb8`
		if coloured {
			want = "Grüße\\u202e\\xff 世界 \x1b[31mred\x1b[0m\\xe4\\xb8"
		}
		for size := 1; size <= len(text); size++ {
			var out bytes.Buffer
			terminal := &printers.Terminal{To: &out, Colours: coloured}
			for rest := []byte(text); len(rest) > 0; {
				n, err := terminal.Write(rest[:min(size, len(rest))])
				if err != nil || n != min(size, len(rest)) {
					t.Fatalf("%d bytes are written, %v", n, err)
				}
				rest = rest[n:]
			}
			if err := terminal.Flush(); err != nil {
				t.Fatal(err)
			}
			if out.String() != want {
				t.Errorf("in pieces of %d bytes it is\n%q, want\n%q", size, out.String(), want)
			}
		}
	}
}

// A line of a diff that stays is not coloured by its own text.
func TestDiffDoesNotColourByItsText(t *testing.T) {
	object := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": value, "b": "\ufdd3red", "\ufdd3key": "x"}}}
	}
	var out bytes.Buffer
	text, err := printers.Unified("x", object("a"), object("b"), "me")
	if err = errors.Join(err, printers.Differences{Differences: []printers.Difference{{Diff: text}}}.Print(
		&printers.Terminal{To: &out, Colours: true}, printers.Palette{On: true}, noon, false)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, " ") && strings.Contains(line, "\x1b") {
			t.Errorf("it prints %q", line)
		}
	}
}
