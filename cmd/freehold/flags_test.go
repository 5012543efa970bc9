// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/freehold-dev/freehold/internal/markers"
)

// writeFlags is the file that gets the table of flags; hack/update-docs.sh sets it.
var writeFlags = flag.String("write-flags", "", "write the table of flags into this file, which is a docs/configuration.md")

// TestFlagsAreDocumented shows that docs/configuration.md has every flag that can be used, with its default and its help. Run make generate
// if it does not.
func TestFlagsAreDocumented(t *testing.T) {
	page := *writeFlags
	if page == "" {
		page = filepath.Join("..", "..", "docs", "configuration.md")
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	flags, _ := newFlags(newOptions(environment{}.lookup), logsapi.NewLoggingConfiguration())
	renewed, err := markers.Replace(string(text), map[string]string{"flags": flagsTable(flags)})
	if err != nil {
		t.Fatal(err)
	}
	if *writeFlags != "" {
		if err := os.WriteFile(page, []byte(renewed), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(renewed, string(text)); diff != "" {
		t.Errorf("%s (-as make generate writes it +as it is):\n%s", page, diff)
	}
}

// flagsTable has a row for each flag but those of an alpha feature: the operator has no flag that turns its gate on.
func flagsTable(flags *pflag.FlagSet) string {
	var text strings.Builder
	text.WriteString("| Flag, with its default | Meaning |\n|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Usage, "[Alpha]") {
			return
		}
		name := "--" + f.Name
		if f.DefValue != "" && f.DefValue != "[]" {
			name += "=" + f.DefValue
		}
		if f.Shorthand != "" {
			name = fmt.Sprintf("-%s`, `%s", f.Shorthand, name)
		}
		_, usage := pflag.UnquoteUsage(f)
		fmt.Fprintf(&text, "| `%s` | %s |\n", name, strings.NewReplacer("|", `\|`, "<", `\<`, "\n", " ").Replace(usage))
	})
	return text.String()
}

func TestFlagsTableHasARowForEachFlag(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.Int("workers", 8, "How many.")
	flags.Bool("split", false, "[Alpha] Whether to split.")
	flags.StringSlice("namespaces", nil, "Which, a|b.")
	flags.IntP("v", "v", 0, "How much.\nA `number`.")
	want := strings.Join([]string{
		"| Flag, with its default | Meaning |",
		"|---|---|",
		"| `--namespaces` | Which, a\\|b. |",
		"| `-v`, `--v=0` | How much. A number. |",
		"| `--workers=8` | How many. |",
		"",
	}, "\n")
	if diff := cmp.Diff(want, flagsTable(flags)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
