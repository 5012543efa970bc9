// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"io"
	"time"

	"github.com/freehold-dev/freehold/pkg/plugin/printers"
)

func unknownFormat(format string) error {
	return usage("there is no output format %q; see --help", format)
}

// checkFormat refuses an output format that a command with a table does not have.
func checkFormat(format string) error {
	switch format {
	case "", formatWide, printers.JSON, printers.YAML:
		return nil
	}
	return unknownFormat(format)
}

// table is an answer that people read as a table and programs as JSON or YAML.
type table interface {
	Print(to io.Writer, palette printers.Palette, now time.Time, wide bool) error
}

// print writes an answer in a format that checkFormat has let pass.
func (p *plugin) print(format string, palette printers.Palette, answer table) error {
	if format == printers.JSON || format == printers.YAML {
		return printers.Machine(p.machine, format, answer)
	}
	return answer.Print(p.Out, palette, p.Clock.Now(), format == formatWide)
}
