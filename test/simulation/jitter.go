// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	_ "unsafe" // for go:linkname

	_ "k8s.io/apimachinery/pkg/util/wait" // has the variable
)

// jitterRand is where the back-offs of client-go take their jitter from. The package keeps it as a variable for the sake of tests, and has
// no other way to set it. With chance in it, requests of the same history would come at other times in each run.
//
//go:linkname jitterRand k8s.io/apimachinery/pkg/util/wait.jitterRand
var jitterRand func() float64

func init() { jitterRand = func() float64 { return 0.5 } }
