// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printers prints what the plugin has found out: for a terminal, with colour where that is wanted, and for
// programs. It is pure but for the writer that it is given.
package printers
