// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package images makes the container images that real nodes run, without a registry and without a daemon: each is a
// static program and an empty /tmp, in an archive as docker save writes it. ToolHive's proxyrunner comes from package
// binaries, the test server and client from module mcp below this directory.
//
// The names of the images end in freehold.invalid, a name that is never resolved, so that nothing can be pulled by
// mistake. Their tags are not latest, so that a kubelet does not try to.
package images
