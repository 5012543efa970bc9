// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fieldowners returns the owners of an object's lines and fields.
//
// It works on objects of any kind and is pure: it sends no request and reads no clock. It does not print; its callers do.
package fieldowners
