// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"time"

	"github.com/freehold-dev/freehold/pkg/plugin/show"
)

func unknownFormat(format string) error {
	return usage("there is no output format %q; see --help", format)
}

// checkFormat refuses an output format that a command with a table does not have.
func checkFormat(format string) error {
	switch format {
	case "", formatWide, show.JSON, show.YAML:
		return nil
	}
	return unknownFormat(format)
}

// table is an answer that people read as a table and programs as JSON or YAML.
type table interface {
	Print(to io.Writer, palette show.Palette, now time.Time, wide bool) error
}

// print writes an answer in a format that checkFormat has let pass.
func (p *plugin) print(format string, palette show.Palette, answer table) error {
	if format == show.JSON || format == show.YAML {
		return show.Machine(p.machine, format, answer)
	}
	return answer.Print(p.Out, palette, p.Clock.Now(), format == formatWide)
}
