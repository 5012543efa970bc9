// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client stands in for the real one, so that the rule against it can be tried.
package client

// Object stands in for the real one.
type Object any
