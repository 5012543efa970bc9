// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package binaries finds the programs of a local cluster, and builds from Go modules those that it does not find.
//
// A program is looked for in the directory that KUBEBUILDER_ASSETS names, then in the cache. The cache is the
// directory FREEHOLD_CACHE, or "freehold" in the user's cache directory. It is keyed by program, version, platform
// and a digest of everything that goes into the build, so a changed pin builds anew and checkouts with different
// pins share one cache. Processes that need the same program at the same time build it once. Where Finder.Published is set, what others
// have built comes before what would have to be built.
//
// The versions are pinned in modules/, whose files are compiled into this package: it works the same from any
// module, working directory or test binary. modules/regenerate.sh moves the pins.
package binaries

//go:generate modules/regenerate.sh
