// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fieldmanager describes writers: who writes which fields of which objects, as data.
//
// A Writer is a field manager's name, the kind of object it writes, and its claim: the fields that it may
// own. A Registry holds the writers of one program and refuses what server-side apply would punish later:
// two managers that claim one field, or a name the API server does not take.
//
// The package knows nothing of MCPServers; Freehold's own writers are in package managers. It imports
// no client and may be imported by everything.
package fieldmanager
