// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 contains the stored version of ToolHive's API: MCPServer and the kinds that it refers to. It has only the spec
// of MCPWebhookConfig; the kind is in v1alpha1.
//
// The schema is ToolHive's, field by field; a parity test compares the two. The package imports only
// k8s.io/apimachinery and its JSON decoder, so that depending on these types stays cheap.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +groupName=toolhive.stacklok.dev
// +kubebuilder:object:generate=false
package v1beta1
