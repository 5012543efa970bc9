// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health finds out how an installation of Freehold is: Look sums it up, Examine looks for what is wrong with it. What could not
// be looked at is never taken for healthy: the answer names it. The package reads, and writes nothing.
package health
