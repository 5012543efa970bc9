// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd holds the CustomResourceDefinitions of the API types under apis/, as controller-gen wrote
// them. The local cluster and the suites install them from here; hack/update-codegen.sh renews them.
package crd

import _ "embed"

// MCPServers is the CustomResourceDefinition mcpservers.toolhive.stacklok.dev as YAML.
//
//go:embed toolhive.stacklok.dev_mcpservers.yaml
var MCPServers string
