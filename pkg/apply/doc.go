// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply writes objects to the API server by server-side apply, for controllers that share these objects with other field managers.
//
// A Writer is one field manager and one kind of objects. A Request has the intent, which is the configuration that the writer wants to
// apply, and the object as the controller knows it. An Applier sends what is needed and returns the Outcome:
//
//   - It sends an apply without force, an edit of managedFields, or a delete. Each names the UID and resourceVersion of an object that
//     was read, or may only create an object. An object that is being deleted is left alone.
//   - It sends nothing if the writer owns just the fields of the intent, with their values. The applier compares the intent with the owned
//     fields once; afterwards its request cache remembers that the two are the same.
//   - The controller's cache need not keep whole objects: a State is enough to decide whether there is something to write. The
//     object is read, once, to edit its managedFields or to explain a conflict.
//   - While a writer is in conflict about an object, the applier keeps the object whole. It finds a further conflict in that object by the
//     API server's own code, and does not send the apply that the API server would refuse.
//   - A refusal has one of a closed set of classes, see Class. A write that met a conflict is not repeated before the object or the
//     intent changes.
//   - A write from an older view is refused: of the source of the intent, see Source, or of an object that the source refers to, see
//     References.
//
// The package does not know MCPServers, and can serve any controller with a fieldmanager.Registry.
package apply
