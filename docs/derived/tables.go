// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/freehold-dev/freehold/pkg/controller"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
)

// writersTable has a row for each manager and claim. Objects of which one manager claims the same share a row.
func writersTable(writers []fieldmanager.Writer) string {
	type row struct {
		manager, claim string
		objects        []string
	}
	var rows []*row
	find := func(manager, claim string) *row {
		for _, r := range rows {
			if r.manager == manager && r.claim == claim {
				return r
			}
		}
		rows = append(rows, &row{manager: manager, claim: claim})
		return rows[len(rows)-1]
	}
	for _, w := range writers {
		r := find(w.Name, w.Summary)
		r.objects = append(r.objects, object(w))
	}

	var text strings.Builder
	text.WriteString("| Field manager | Object | Claim |\n|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&text, "| `%s` | %s | %s |\n", r.manager, strings.Join(r.objects, ", "), r.claim)
	}
	return text.String()
}

func object(w fieldmanager.Writer) string {
	name := w.Kind.Kind
	if w.Subresource != "" {
		name += "/" + w.Subresource
	}
	if w.Object != "" {
		name += " (" + w.Object + ")"
	}
	return name
}

// childName is the name of a child of the MCPServer NAME.
func childName(c *inventory.Child) string {
	if c.ByContent {
		return c.Name("NAME") + "-DIGEST"
	}
	return c.Name("NAME")
}

// childrenTable has a row for each child.
func childrenTable(children []*inventory.Child) string {
	var text strings.Builder
	text.WriteString("| Child | Name | Field manager | Depends on |\n|---|---|---|---|\n")
	for _, child := range children {
		var dependencies []string
		for _, d := range child.DependsOn {
			dependencies = append(dependencies, " "+d.Kind.Kind+" "+childName(d))
		}
		fmt.Fprintf(&text, "| %s | %s | `%s` |%s |\n", child.Kind.Kind, childName(child), child.Writer, strings.Join(dependencies, ","))
	}
	return text.String()
}

// enforcementsTable has a row for each release since which a proxyrunner enforces something whole.
func enforcementsTable(enforcements []render.Enforcement) string {
	var text strings.Builder
	text.WriteString("| An MCPServer asks for | Proxyrunners | What these do |\n|---|---|---|\n")
	for i := range enforcements {
		e := &enforcements[i]
		fmt.Fprintf(&text, "| %s | before v%s | %s |\n", e.Feature, e.Since, e.Less)
	}
	return text.String()
}

// stepsTable has a row for each step of a pass, in their order.
func stepsTable(steps []controller.Step) string {
	var b strings.Builder
	b.WriteString("| | Step | What it does |\n|---|---|---|\n")
	for i, step := range steps {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", i+1, step.Name, step.Does)
	}
	return b.String()
}

// phasesTable has a row for each row of the table that decides about phases, in their order.
func phasesTable(rows []status.Row) string {
	var b strings.Builder
	b.WriteString("| Phase | Message | When |\n|---|---|---|\n")
	for i := range rows {
		message := rows[i].Message
		if strings.HasSuffix(message, ": ") {
			message += "…"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", rows[i].Phase, message, rows[i].When)
	}
	return b.String()
}
