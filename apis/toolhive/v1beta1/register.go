// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive"
)

// SchemeGroupVersion is the group and version of this package's types.
var SchemeGroupVersion = schema.GroupVersion{Group: toolhive.GroupName, Version: "v1beta1"}

// Kinds, as owner references and references between these objects name them.
const (
	// MCPServerKind is the kind of MCPServer.
	MCPServerKind = "MCPServer"
	// MCPOIDCConfigKind is the kind of MCPOIDCConfig.
	MCPOIDCConfigKind = "MCPOIDCConfig"
	// MCPAuthzConfigKind is the kind of MCPAuthzConfig.
	MCPAuthzConfigKind = "MCPAuthzConfig"
	// MCPExternalAuthConfigKind is the kind of MCPExternalAuthConfig.
	MCPExternalAuthConfigKind = "MCPExternalAuthConfig"
	// MCPToolConfigKind is the kind of MCPToolConfig.
	MCPToolConfigKind = "MCPToolConfig"
	// MCPTelemetryConfigKind is the kind of MCPTelemetryConfig.
	MCPTelemetryConfigKind = "MCPTelemetryConfig"
	// MCPWebhookConfigKind is the kind of MCPWebhookConfig, which has the version v1alpha1 alone.
	MCPWebhookConfigKind = "MCPWebhookConfig"
	// MCPGroupKind is the kind of MCPGroup.
	MCPGroupKind = "MCPGroup"
)

var (
	// SchemeBuilder collects the functions that add this package's types to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds this package's types to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource returns the group resource of a resource name of this group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

// Kind returns the group kind of a kind of this group.
func Kind(kind string) schema.GroupKind {
	return SchemeGroupVersion.WithKind(kind).GroupKind()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&MCPServer{}, &MCPServerList{},
		&MCPOIDCConfig{}, &MCPOIDCConfigList{},
		&MCPAuthzConfig{}, &MCPAuthzConfigList{},
		&MCPExternalAuthConfig{}, &MCPExternalAuthConfigList{},
		&MCPToolConfig{}, &MCPToolConfigList{},
		&MCPTelemetryConfig{}, &MCPTelemetryConfigList{},
		&MCPGroup{}, &MCPGroupList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
