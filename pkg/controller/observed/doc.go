// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observed has what controllers see of a cluster: informers, whose caches hold small structs in place of objects, and the
// snapshot of one MCPServer and its children on which a pass decides. It writes nothing.
package observed
