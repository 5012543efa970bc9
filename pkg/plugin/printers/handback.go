// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"fmt"
	"io"
	"strings"

	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

// Handback is what a handback of one MCPServer to ToolHive would change.
type Handback struct {
	Namespace, Name string
	// Generation of the MCPServer.
	Generation int64
	// Objects that pass to ToolHive's managers, in order.
	Objects []ObjectTakeover
	// BackendRestarts tells that the backend's pods are replaced by it.
	BackendRestarts bool
	// Blockers keep it from being done.
	Blockers []Blocker
}

// Operators tells of operators that run, and how to stop them.
func Operators(to io.Writer, palette Palette, operators []cluster.Running) {
	printOperators(to, palette, operators)
}

// Print shows it for humans.
func (h Handback) Print(to io.Writer, palette Palette) error {
	fmt.Fprintln(to, palette.Bold(fmt.Sprintf("mcpserver/%s (namespace %s)", h.Name, h.Namespace))+":")
	for _, b := range h.Blockers {
		fmt.Fprintln(to, palette.Removed(fmt.Sprintf("  %s: %s: %s", b.Object, b.Reason, b.Message)))
	}
	backend := "no pod restarts"
	if h.BackendRestarts {
		backend = "its pods are replaced now, in one rollout: the gate opens for ToolHive's runners"
	}
	fmt.Fprintln(to, "  backend:", backend)
	fmt.Fprintln(to, "  proxy: its pods are replaced by ToolHive's operator once that runs, in one rollout")
	if h.Generation == 1 {
		fmt.Fprintln(to, "  The MCPServer was never edited, so the gate is open for Freehold's proxies too: start ToolHive's operator soon.")
	}
	var rows [][]string
	var alone []string
	for _, o := range h.Objects {
		cells := o.cells(false)
		if len(cells) == 0 {
			alone = append(alone, o.Object)
		}
		for i, c := range cells {
			row := []string{o.Object, c[0], c[1], c[2]}
			if i > 0 {
				row[0] = ""
			}
			rows = append(rows, row)
		}
	}
	if len(rows) > 0 {
		if err := Table(to, palette, []string{"OBJECT", "FIELD", "NOW", "AFTERWARDS"}, rows); err != nil {
			return err
		}
	}
	fmt.Fprintln(to, "The annotations and conditions of Freehold go, and what it owns becomes ToolHive's.")
	if len(alone) > 0 {
		line(to, "Nothing else changes of %s", strings.Join(alone, ", "))
	}
	return nil
}
