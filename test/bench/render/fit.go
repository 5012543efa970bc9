// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
)

// straight is constant + each·x.
type straight struct{ constant, each float64 }

func (s straight) at(x float64) float64 { return s.constant + s.each*x }

// fitStraight fits by least squares. It needs points at two places.
func fitStraight(points []point) (s straight, ok bool) {
	if len(points) == 0 || !slices.ContainsFunc(points, func(p point) bool { return p.x != points[0].x }) {
		return s, false
	}
	var mean point
	for _, p := range points {
		mean.x, mean.y = mean.x+p.x/float64(len(points)), mean.y+p.y/float64(len(points))
	}
	var both, alone float64
	for _, p := range points {
		both, alone = both+(p.x-mean.x)*(p.y-mean.y), alone+(p.x-mean.x)*(p.x-mean.x)
	}
	s.each = both / alone
	s.constant = mean.y - s.each*mean.x
	return s, true
}

// power is factor·x^exponent.
type power struct{ factor, exponent float64 }

func (p power) at(x float64) float64 { return p.factor * math.Pow(x, p.exponent) }

// fitPower fits log y over log x by least squares. It needs positive points at two places.
func fitPower(points []point) (p power, ok bool) {
	logarithms := make([]point, 0, len(points))
	for _, at := range points {
		if at.x <= 0 || at.y <= 0 {
			return p, false
		}
		logarithms = append(logarithms, point{math.Log(at.x), math.Log(at.y)})
	}
	s, ok := fitStraight(logarithms)
	return power{math.Exp(s.constant), s.each}, ok
}

const (
	// fewestAbove is how many points fitAbove needs: it chooses three numbers, which fit any three points.
	fewestAbove = 4
	// constants is how many constants fitAbove tries.
	constants = 1000
)

// fitAbove fits constant + factor·x^exponent. Of the constants from 0 to the smallest value, with what fitPower makes of the rest, it
// takes the one with the least squares of log y.
func fitAbove(points []point) (constant float64, above power, ok bool) {
	if len(points) < fewestAbove {
		return 0, above, false
	}
	smallest, least := math.Inf(1), math.Inf(1)
	for _, at := range points {
		smallest = min(smallest, at.y)
	}
	for i := range constants {
		tried := smallest * float64(i) / constants
		rest := make([]point, 0, len(points))
		for _, at := range points {
			rest = append(rest, point{at.x, at.y - tried})
		}
		p, fits := fitPower(rest)
		if !fits {
			continue
		}
		squares := 0.0
		for _, at := range points {
			squares += math.Pow(math.Log((tried+p.at(at.x))/at.y), 2)
		}
		if squares < least {
			least, constant, above, ok = squares, tried, p, true
		}
	}
	return constant, above, ok
}
