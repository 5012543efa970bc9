// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload has what Freehold reads of the workloads of MCPServers and of their pods, and of nothing else. Caches keep these
// structs in place of the API's, most of whose fields Freehold never reads. So a decision that needs one more field does not compile
// before the field is here, and is filled in from the object.
package workload
