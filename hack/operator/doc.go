// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator installs Freehold on a cluster and runs it there as a process of this machine, with the rights
// of its own ServiceAccount and no others. The local cluster, the suites and the benchmark share it.
package operator
