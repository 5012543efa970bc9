// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !reworded

package controller

// unworded returns a message of the status, or of an event, as it is written without the build tag reworded.
func unworded(message string) string { return message }
