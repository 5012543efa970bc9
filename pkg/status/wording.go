// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !reworded

package status

// worded returns a message as it is written. With the build tag reworded it is another one, see wording_reworded.go.
func worded(message string) string { return message }
