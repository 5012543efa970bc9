// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printers prints the plugin's results: for a terminal, with colour where that is wanted, and for programs. It
// is pure except for the writer that it is given.
package printers
