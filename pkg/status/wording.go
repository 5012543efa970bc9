// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !reworded

package status

// Worded returns a message as it is written. With the build tag reworded it is another one, see wording_reworded.go.
func Worded(message string) string { return message }
