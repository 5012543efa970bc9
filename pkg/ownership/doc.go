// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownership reads and edits managedFields: it returns the owners of a field and the fields of a manager, reports
// whether either has changed, and makes the patches that transfer, release or restore a claim.
//
// It works on objects of any kind, does not depend on Freehold's own kinds, and sends no requests.
package ownership
