// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fieldmanager describes writers as data: which field manager writes which fields of which objects.
//
// A Writer is a field manager's name, the kind of object it writes, and its claim: the fields that it may own. A Registry
// holds the writers of one program. It refuses errors that server-side apply would only show later: two managers that claim
// one field, or a name that the API server does not accept.
//
// The package does not depend on MCPServers; package managers has Freehold's own writers. It imports no client, and every
// package may import it.
package fieldmanager
