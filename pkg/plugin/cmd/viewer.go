// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/freehold-dev/freehold/pkg/plugin/printers"
)

// viewer is a verb that shows what it finds, to people or to programs, and writes nothing.
type viewer struct {
	planner
	// all is set for the objects of all namespaces.
	all    bool
	output string
}

// table is an answer that people read as a table and programs as JSON or YAML.
type table interface {
	Print(to io.Writer, palette printers.Palette, now time.Time, wide bool) error
}

// outputFlag adds the flag of the format. Its help says what people are shown.
func (o *viewer) outputFlag(cmd *cobra.Command, help string) {
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "Output format: wide, yaml, json. "+help)
	complete(cmd, "output", cobra.FixedCompletions([]string{formatWide, printers.YAML, printers.JSON}, nothing))
}

// format checks the flags of the output.
func (o *viewer) format() (palette printers.Palette, err error) {
	switch o.output {
	case "", formatWide, printers.JSON, printers.YAML:
		return o.palette()
	}
	return palette, unknownFormat(o.output)
}

// prepare checks the flags, and connects.
func (o *viewer) prepare(names []string) (palette printers.Palette, err error) {
	if palette, err = o.format(); err != nil {
		return palette, err
	}
	if err := checkNames(names, o.all); err != nil {
		return palette, err
	}
	return palette, o.connect()
}

// answer prints what was found, and decides on the exit code.
func (o *viewer) answer(palette printers.Palette, answer table, wrong, unknown bool) (err error) {
	if o.output == printers.JSON || o.output == printers.YAML {
		err = printers.Machine(o.machine, o.output, answer)
	} else {
		err = answer.Print(o.Out, palette, o.Clock.Now(), o.output == formatWide)
	}
	switch {
	case err != nil:
		return err
	case wrong:
		return errFound
	case unknown:
		return errNotChecked
	}
	return nil
}
