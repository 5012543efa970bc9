// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownership reads managedFields: who owns a field, what a manager owns, and whether either has
// changed since it was last looked at.
//
// It works on any object of any kind, knows nothing of Freehold's own, and sends no requests.
package ownership
