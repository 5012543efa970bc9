// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConfigStatus is what the operator observed of a configuration that MCPServers share.
type ConfigStatus struct {
	// conditions, each of one type. Other writers may add conditions of their own types.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that this status is about; -1 while no operator has looked at the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// configHash is a hash of the last valid spec. Values are only ever compared with one another.
	// +optional
	ConfigHash string `json:"configHash,omitempty"`
}

// CABundleSource is where certificates of certificate authorities come from, in PEM.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMapRef) && size(self.configMapRef.name) > 0",message="configMapRef.name is required and must be non-empty"
type CABundleSource struct {
	// configMapRef names the ConfigMap and its key.
	// +optional
	ConfigMapRef *ConfigMapKeySelector `json:"configMapRef,omitempty"`
}

// ConfigMapKeySelector names one key of a ConfigMap. It has the shape of the core type of that name, which would make
// these API types depend on more than apimachinery.
//
// +structType=atomic
type ConfigMapKeySelector struct {
	// name of the ConfigMap.
	// +kubebuilder:default=""
	// +optional
	Name string `json:"name,omitempty"`
	// key in the ConfigMap; empty means ca.crt.
	// +required
	Key string `json:"key"`
	// optional is accepted, and has no effect: the ConfigMap must exist. An embedded authorization server refuses it.
	// +optional
	Optional *bool `json:"optional,omitempty"`
}
