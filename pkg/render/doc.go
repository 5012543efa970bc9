// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render turns an MCPServer, the objects that it refers to and the operator's options into
// intents: the fields that each of Freehold's writers sets on each child.
//
// It is pure. It imports no client, reads no clock and no environment, and the same input gives the same
// bytes, in whatever order maps and lists that carry no order arrive.
//
// An intent names exactly what the API server stores of it: nothing that the API drops when empty, and every
// default that would end up inside what its writer owns. So the writer's claim on the live object, read back,
// equals the intent unless another field manager interfered.
//
// A spec that cannot work is refused as a whole, by an InvalidError with all that is wrong, before anything is written.
// A field that works otherwise than it says comes with a notice.
//
// It may be imported by the controller and by packages above it.
package render
