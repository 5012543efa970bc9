// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authserver validates the embedded authorization server of an MCPExternalAuthConfig and renders what an MCPServer's
// proxy needs of it: the block embedded_auth_server_config of the RunConfig, environment variables, volumes, and a checksum of
// its certificate authorities.
//
// It is pure. It imports no client, reads no clock and no environment, and the same input gives the same bytes. Its input has
// no Secret; of a ConfigMap it yields nothing but the checksum.
//
// Validate accepts what a proxyrunner of the current release starts with, as far as the configuration alone decides that.
// Render checks that again, and what depends on the MCPServer: it returns a Result or every problem that there is, never both.
//
// An actorMatcher is compiled by the compiler of CEL that the proxyrunner has, with the same variables. Only one
// that would take long to compile is refused although a proxyrunner starts with it.
package authserver
