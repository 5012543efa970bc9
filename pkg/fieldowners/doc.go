// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fieldowners tells of an object, line by line and field by field, who owns it.
//
// It works on any object of any kind and is pure: it sends no request and reads no clock. How the answer is shown is
// the business of others.
package fieldowners
