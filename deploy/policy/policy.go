// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy holds the optional ValidatingAdmissionPolicies, so that the suites install exactly what users do.
package policy

import "embed"

// Manifests has one policy and its binding in each file.
//
//go:embed field-managers.yaml runners.yaml owned-fields.yaml
var Manifests embed.FS

// BesideToolHive has the policy, and its binding, for clusters in which ToolHive's operator goes on for its other kinds.
//
//go:embed beside-toolhive/toolhive-operator.yaml
var BesideToolHive []byte

// Proxies has the policy, and its binding, that lets the operator alone decide what the pods of proxies run.
//
//go:embed proxies/proxies.yaml
var Proxies []byte
