// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/freehold-dev/freehold/test/bench/recording"
)

// aim is the largest exponent that the project allows Freehold: what it costs is to grow hardly faster than the number of MCPServers.
const aim = 1.05

// The costs whose exponents have that aim, as the plot and the table name them.
const (
	operatorCPU  = "CPU seconds of the operator"
	peakMemory   = "peak of memory, MiB"
	apiServerCPU = "CPU seconds of kube-apiserver"
	untilReady   = "seconds until all are Ready"
)

// cost is something that grows with the number of MCPServers.
type cost struct {
	what string
	of   measure
	// hasAim is set for what the plot shows, and clear for what tells why that grows.
	hasAim bool
	// hasConstant is set for what an operator also needs without MCPServers. The exponent is that of what is above it.
	hasConstant bool
}

// costs are those of the table. CPU time is that of the creation. That of etcd tells how fast the machine was: an MCPServer takes as many
// writes, however many there are.
func costs() []cost {
	return []cost{
		{what: operatorCPU, hasAim: true, of: stage(recording.Create, cpu(recording.Operator))},
		{what: peakMemory, hasAim: true, hasConstant: true, of: peak},
		{what: apiServerCPU, hasAim: true, of: stage(recording.Create, cpu(recording.APIServer))},
		{what: untilReady, hasAim: true, of: milestone(recording.ServersReady)},
		{what: "CPU of kube-controller-manager", of: stage(recording.Create, cpu(recording.ControllerManager))},
		{what: "CPU of etcd", of: stage(recording.Create, cpu(recording.Etcd))},
		{what: "CPU of the operator, a restart", of: stage(recording.Restart, cpu(recording.Operator))},
	}
}

// exponent is how fast a cost of a program grows, in hundredths: the fits are no better. ok is false where too little was measured to tell.
func (c cost) exponent(r *recording.Recording, program string) (exponent float64, ok bool) {
	points := pointsOf(r, program, c.of)
	fitted, ok := fitPower(points)
	if c.hasConstant {
		_, fitted, ok = fitAbove(points)
	}
	return math.Round(100*fitted.exponent)/100 + 0, ok // Zero without a sign.
}

// cell is the exponent of a program, and whether it is above the aim, which Freehold has.
func (c cost) cell(r *recording.Recording, program string) string {
	exponent, ok := c.exponent(r, program)
	switch {
	case !ok:
		return ""
	case c.hasAim && program == freehold && exponent > aim:
		return fmt.Sprintf("%.2f, above %v", exponent, aim)
	}
	return fmt.Sprintf("%.2f", exponent)
}

// growth is the table of exponents, without those that too little was measured for. It is empty if no two runs differ in their numbers of
// MCPServers.
func growth(r *recording.Recording) string {
	programs := slices.DeleteFunc([]string{freehold, toolHive}, func(program string) bool {
		return !slices.ContainsFunc(costs(), func(c cost) bool { return c.cell(r, program) != "" })
	})
	if !slices.Contains(programs, freehold) {
		return ""
	}
	var b strings.Builder
	b.WriteString("| Exponent | " + strings.Join(programs, " | ") + " |\n|---|" + strings.Repeat("---:|", len(programs)) + "\n")
	for _, c := range costs() {
		var cells []string
		for _, program := range programs {
			cells = append(cells, c.cell(r, program))
		}
		if strings.Join(cells, "") == "" {
			continue
		}
		b.WriteString("| " + c.what)
		if c.hasConstant {
			b.WriteString(", above a constant")
		}
		b.WriteString(" |")
		for _, cell := range cells {
			b.WriteString(strings.TrimRight(" "+cell, " ") + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// growthPlot shows what the exponents are of.
func growthPlot(r *recording.Recording) plot {
	p := plot{name: "growth", title: "What Freehold costs; dotted: growth in proportion", logarithmic: true}
	for _, c := range costs() {
		if !c.hasAim {
			continue
		}
		points := slices.DeleteFunc(pointsOf(r, freehold, c.of), func(at point) bool { return at.y <= 0 })
		if len(points) > 0 {
			p.lines = append(p.lines, line{c.what, points})
		}
	}
	return p
}
