// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the deprecated, still served version of ToolHive's API. Its schema is that of v1beta1; objects are
// stored as v1beta1 and need no conversion. MCPWebhookConfig has this version alone, in which it is stored; it is not deprecated.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +groupName=toolhive.stacklok.dev
// +kubebuilder:object:generate=false
package v1alpha1
