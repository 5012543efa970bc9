// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
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

// format checks the flag of the output.
func (o *viewer) format() error {
	switch o.output {
	case "", formatWide, printers.JSON, printers.YAML:
		return nil
	}
	return unknownFormat(o.output)
}

// prepare checks the flags, and connects.
func (o *viewer) prepare(names []string) error {
	if err := errors.Join(o.format(), checkNames(names, o.all)); err != nil {
		return err
	}
	return o.connect()
}

// answer prints what was found, and decides on the exit code.
func (o *viewer) answer(answer table, wrong, unknown bool) (err error) {
	if o.output == printers.JSON || o.output == printers.YAML {
		err = printers.Machine(o.machine, o.output, answer)
	} else {
		err = answer.Print(o.Out, o.palette, o.Clock.Now(), o.output == formatWide)
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
