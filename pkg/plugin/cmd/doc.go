// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cmd is the command line of kubectl freehold: its verbs, their flags and help, and the exit codes.
package cmd
