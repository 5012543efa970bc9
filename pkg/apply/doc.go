// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply is the only package that writes to the API server on behalf of a writer.
//
// Its guarantees:
//
//   - Every write is a server-side apply without force, or a delete, and each is a compare-and-swap: an object
//     that is known is written under its UID and resourceVersion, an object that is not known may only be
//     created, and an object that is going is left alone.
//   - What is already so is not written. An intent is compared with what its own manager owns on the live
//     object; after the first look what was remembered of both replaces the comparison.
//   - A cache need not keep objects. The State of an object decides whether a writer has work on it; the object itself is
//     read, once, where ownership is edited or a conflict is explained.
//   - A refusal is one of a closed set of classes (see Class). One that only a change of the object or of the
//     intent can undo is not tried again before that.
//   - A view older than the one that an object was last written from does not win, be it of the source of an intent (see
//     Source) or of an object that the source refers to (see References).
//
// The package knows nothing of MCPServers and can serve any controller with a fieldmanager.Registry.
package apply
