// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/freehold-dev/freehold/test/bench/recording"
)

const (
	// width and height of a plot, and the margins around the area that the axes bound, in pixels.
	width, height              = 560, 320
	left, right, above, bottom = 64, 28, 84, 44
)

// point is a number of MCPServers and what was measured with it.
type point struct{ x, y float64 }

// line is what was measured of one program, or one cost of a program.
type line struct {
	program string
	points  []point
}

// plot shows how something grows with the number of MCPServers.
type plot struct {
	// name is that of the file, without its ending.
	name string
	// title says what it is, with the unit.
	title string
	lines []line
	// logarithmic is set for axes of powers of ten. The plot then shows growth in proportion as well, from the first point of each line.
	logarithmic bool
}

// looks are the colours and the marks of lines. The colours can be told apart by people who see few of them.
var looks = map[string]struct{ colour, mark string }{
	raw:      {"#6e7781", "square"},
	freehold: {"#0072b2", "circle"},
	toolHive: {"#d55e00", "triangle"},

	operatorCPU:  {"#0072b2", "circle"},
	peakMemory:   {"#009e73", "square"},
	apiServerCPU: {"#d55e00", "triangle"},
	untilReady:   {"#a3478f", "diamond"},
}

// plots returns all plots.
func plots(r *recording.Recording) []plot {
	r = shown(r)
	all, operators := []string{raw, freehold, toolHive}, []string{freehold, toolHive}
	return []plot{
		newPlot(r, "children", "Seconds until all children exist", milestone(recording.ChildrenExist), all),
		newPlot(r, "ready", "Seconds until all MCPServers are Ready", milestone(recording.ServersReady), operators),
		newPlot(r, "cpu", "CPU seconds of the operator until it is quiet",
			stage(recording.Create, cpu(recording.Operator)), operators),
		newPlot(r, "control-plane", "CPU seconds of the control plane meanwhile",
			stage(recording.Create, planeCPU), operators),
		newPlot(r, "memory", "Resident memory of the operator after the idle time, MiB", stage(recording.Idle, settled), operators),
		newPlot(r, "peak", "Peak of the operator's resident memory, MiB", peak, operators),
		newPlot(r, "writes", "Writes for each MCPServer that is created", stage(recording.Create, perServer), operators),
		newPlot(r, "answers", "Seconds until edits by hand are answered, p99", answer(recording.Image, p99), all),
		newPlot(r, "restart", "CPU seconds of a restart until the operator is quiet", stage(recording.Restart, cpu(recording.Operator)), operators),
		newPlot(r, "config", "Seconds until an edit of an MCPOIDCConfig is rolled out", stage(recording.Config, took), operators),
		newPlot(r, "deletion", "Seconds until all are deleted", stage(recording.Delete, took), operators),
		growthPlot(r),
	}
}

func newPlot(r *recording.Recording, name, title string, of measure, programs []string) plot {
	p := plot{name: name, title: title}
	for _, program := range programs {
		if points := pointsOf(r, program, of); len(points) > 0 {
			p.lines = append(p.lines, line{program, points})
		}
	}
	return p
}

// series returns the runs that show how something grows: they differ in their numbers of MCPServers and in nothing else.
func series(r *recording.Recording) []recording.Run { return shown(r).Runs }

// pointsOf returns what was measured of a program in each run of the series.
func pointsOf(r *recording.Recording, program string, of measure) (points []point) {
	for _, run := range series(r) {
		if v := value(run, program, of); !math.IsNaN(v) {
			points = append(points, point{float64(run.Servers), v})
		}
	}
	return points
}

// draw draws a plot. Linear axes begin at zero, so that growth in proportion is a straight line through the origin.
func (p plot) draw() string {
	xs, ys := p.axes()
	x := func(v float64) float64 { return left + xs.part(v)*(width-left-right) }
	y := func(v float64) float64 { return height - bottom - ys.part(v)*(height-above-bottom) }

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" `+
		`font-family="system-ui, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="12" fill="#1f2328" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", escaped(p.title))
	fmt.Fprintf(&b, `<rect x="0.5" y="0.5" width="%d" height="%d" rx="6" fill="#ffffff" stroke="#d0d7de"/>`+"\n", width-1, height-1)
	fmt.Fprintf(&b, `<text x="%d" y="28" font-size="14" font-weight="bold">%s</text>`+"\n", left, escaped(p.title))
	for _, v := range ys.between {
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#eff2f5"/>`+"\n", left, y(v), width-right, y(v))
	}
	for _, v := range ys.ticks {
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#d0d7de"/>`+"\n", left, y(v), width-right, y(v))
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-8, y(v)+4, plain(v))
	}
	for _, v := range xs.between {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#d0d7de"/>`+"\n", x(v), height-bottom, x(v), height-bottom+3)
	}
	for _, v := range xs.ticks {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#8c959f"/>`+"\n", x(v), height-bottom, x(v), height-bottom+5)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x(v), height-bottom+18, plain(v))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">MCPServers</text>`+"\n", width-right, height-8)
	perRow, apart := 3, 160
	if p.logarithmic { // Its lines have longer names.
		perRow, apart = 2, 234
	}
	for i, l := range p.lines {
		look := looks[l.program]
		labelX, labelY := left+i%perRow*apart, 50+i/perRow*20
		b.WriteString(mark(look.mark, look.colour, float64(labelX)+5, float64(labelY)))
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", labelX+16, labelY+4, escaped(l.program))
		if p.logarithmic {
			first := l.points[0]
			last := min(xs.last()/first.x, ys.last()/first.y)
			fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-dasharray="2 3"/>`+"\n",
				x(first.x), y(first.y), x(first.x*last), y(first.y*last), look.colour)
		}
		var path []string
		for _, at := range l.points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x(at.x), y(at.y)))
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(path, " "), look.colour)
		for _, at := range l.points {
			b.WriteString(mark(look.mark, look.colour, x(at.x), y(at.y)))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// mark draws the mark of a program, so that lines differ by more than their colour.
func mark(shape, colour string, x, y float64) string {
	const size = 4.5
	switch shape {
	case "square":
		return fmt.Sprintf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x-size+0.5, y-size+0.5, 2*size-1, 2*size-1, colour)
	case "triangle":
		return fmt.Sprintf(`<polygon points="%.1f,%.1f %.1f,%.1f %.1f,%.1f" fill="%s"/>`+"\n", x, y-size-0.5, x-size-0.5, y+size, x+size+0.5, y+size, colour)
	case "diamond":
		return fmt.Sprintf(`<polygon points="%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f" fill="%s"/>`+"\n",
			x, y-size-0.5, x+size+0.5, y, x, y+size+0.5, x-size-0.5, y, colour)
	default:
		return fmt.Sprintf(`<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s"/>`+"\n", x, y, size, colour)
	}
}

// plain formats the number of a tick.
func plain(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // A strings.Builder takes everything.
	return b.String()
}
