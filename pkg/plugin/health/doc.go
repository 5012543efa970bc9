// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health examines an installation of Freehold: Look sums it up, Examine looks for problems. What could not be looked at never
// counts as healthy: the answer names it. The package reads, and writes nothing.
package health
