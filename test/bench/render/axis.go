// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "math"

// mostTicks is how many numbers a linear axis has at most, beside zero.
const mostTicks = 6

// axis reaches from its first tick to its last one.
type axis struct {
	ticks []float64
	// between are what has a mark without a number.
	between     []float64
	logarithmic bool
}

func (a axis) last() float64 { return a.ticks[len(a.ticks)-1] }

// part returns where a value is on the axis, from 0 to 1.
func (a axis) part(v float64) float64 {
	first := a.ticks[0]
	if a.logarithmic {
		return math.Log(v/first) / math.Log(a.last()/first)
	}
	return (v - first) / (a.last() - first)
}

// axes returns the axes of a plot.
func (p plot) axes() (x, y axis) {
	smallest, largest := point{math.Inf(1), math.Inf(1)}, point{}
	for _, l := range p.lines {
		for _, at := range l.points {
			smallest.x, smallest.y = min(smallest.x, at.x), min(smallest.y, at.y)
			largest.x, largest.y = max(largest.x, at.x), max(largest.y, at.y)
		}
	}
	switch {
	case p.logarithmic && len(p.lines) == 0:
		return decades(1, 1), decades(1, 1)
	case p.logarithmic:
		return decades(smallest.x, largest.x), decades(smallest.y, largest.y)
	}
	return axis{ticks: ticks(largest.x)}, axis{ticks: ticks(largest.y)}
}

// ticks returns the numbers of an axis from zero on, the last of which is at least the largest value.
func ticks(largest float64) (numbers []float64) {
	if largest <= 0 {
		largest = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(largest/mostTicks)))
	for _, times := range []float64{1, 2, 5, 10} {
		if largest <= step*times*mostTicks {
			step *= times
			break
		}
	}
	count := int(math.Ceil(largest/step - 1e-9))
	for i := range count + 1 {
		numbers = append(numbers, float64(i)*step)
	}
	return numbers
}

// decades returns the axis of the powers of ten around the values, which are positive.
func decades(smallest, largest float64) axis {
	exponent := 0 // Powers of ten are exact, and logarithms of them are not.
	for math.Pow10(exponent) > smallest {
		exponent--
	}
	for math.Pow10(exponent+1) <= smallest {
		exponent++
	}
	a := axis{ticks: []float64{math.Pow10(exponent)}, logarithmic: true}
	for len(a.ticks) == 1 || a.last() < largest {
		for times := 2.0; times < 10; times++ {
			a.between = append(a.between, times*a.last())
		}
		exponent++
		a.ticks = append(a.ticks, math.Pow10(exponent))
	}
	return a
}
