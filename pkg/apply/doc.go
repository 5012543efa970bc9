// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply is the only package that writes to the API server on behalf of a writer.
//
// Its guarantees:
//
//   - Every write is a server-side apply without force, an edit of managedFields, or a delete. Each is a compare-and-swap: it
//     names the UID and resourceVersion of an object that was read, or may only create an object that was not. An
//     object that is being deleted is left alone.
//   - An intent that the object already matches sends no request. The intent is compared with the fields that its manager owns
//     of the live object; after the first comparison, a request cache replaces it.
//   - A cache need not keep objects. The State of an object decides whether a writer has work on it; the object itself is
//     read, once, to edit its ownership or to explain a conflict.
//   - An object in dispute is kept whole. A conflict that an edit brings about is found in it by the API server's own code, and
//     an apply that the API server would refuse is not sent.
//   - A refusal has one of a closed set of classes (see Class). A conflict is not retried before the object or the intent
//     changes.
//   - An older view never overwrites a newer one, whether of the source of an intent (see Source) or of an object that the
//     source refers to (see References).
//
// The package does not depend on MCPServers and can serve any controller with a fieldmanager.Registry.
package apply
