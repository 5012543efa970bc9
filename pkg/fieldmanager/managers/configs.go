// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

// Config is a kind that MCPServers refer to.
type Config struct {
	schema.GroupVersionKind
	// Resource is the plural name in the API.
	Resource string
	// Finalizer holds objects of the kind until nothing refers to them. ToolHive defines it.
	Finalizer string
	// Hashes are the fields of an MCPServer's status with the hashes of the objects in use; none of an MCPGroup.
	Hashes []string
}

// GroupVersionResource returns the resource of the kind for requests.
func (c *Config) GroupVersionResource() schema.GroupVersionResource {
	return c.GroupVersion().WithResource(c.Resource)
}

// IsGroup reports whether the kind is MCPGroup. Other kinds refer to it, and it is no configuration: nothing holds its
// deletion.
func (c *Config) IsGroup() bool { return c.Kind == v1beta1.MCPGroupKind }

// Configs returns the kinds that MCPServers refer to.
func Configs() []Config {
	of := func(version, kind, resource, finalizer string, hashes ...string) Config {
		return Config{schema.GroupVersionKind{Group: toolhive.GroupName, Version: version, Kind: kind}, resource, finalizer, hashes}
	}
	return []Config{
		of("v1beta1", v1beta1.MCPOIDCConfigKind, "mcpoidcconfigs", v1beta1.FinalizerOIDCConfig, "oidcConfigHash"),
		of("v1beta1", v1beta1.MCPAuthzConfigKind, "mcpauthzconfigs", v1beta1.FinalizerAuthzConfig, "authzConfigHash"),
		of("v1beta1", v1beta1.MCPExternalAuthConfigKind, "mcpexternalauthconfigs", v1beta1.FinalizerExternalAuthConfig, "externalAuthConfigHash", "authServerConfigHash"),
		of("v1beta1", v1beta1.MCPToolConfigKind, "mcptoolconfigs", v1beta1.FinalizerToolConfig, "toolConfigHash"),
		of("v1beta1", v1beta1.MCPTelemetryConfigKind, "mcptelemetryconfigs", v1beta1.FinalizerTelemetryConfig, "telemetryConfigHash"),
		of("v1alpha1", v1beta1.MCPWebhookConfigKind, "mcpwebhookconfigs", v1beta1.FinalizerWebhookConfig, "webhookConfigHash"),
		of("v1beta1", v1beta1.MCPGroupKind, "mcpgroups", v1beta1.FinalizerGroup),
	}
}

// ConfigOf returns the row of a kind that MCPServers refer to, or nil for another kind.
func ConfigOf(kind schema.GroupKind) *Config {
	for _, config := range Configs() {
		if config.GroupKind() == kind {
			return &config
		}
	}
	return nil
}

// configWriters returns the writers of the objects that MCPServers refer to.
func configWriters() (all []fieldmanager.Writer) {
	for _, config := range Configs() {
		kind := config.GroupKind()
		status := fieldmanager.Writer{
			Name: ConfigStatus, Kind: kind, Subresource: "status",
			Claim:   statusFields([]string{"configHash", "observedGeneration"}, v1beta1.ConfigConditions()),
			Summary: "configHash, observedGeneration, the conditions that ToolHive's operator has, FieldsOwned",
		}
		if config.IsGroup() {
			status.Name, status.Summary = GroupStatus, "phase, members and their number, observedGeneration, the conditions MCPServersChecked and FieldsOwned"
			status.Claim = statusFields([]string{
				"phase", "servers", "serverCount", "remoteProxies", "remoteProxyCount", "entries", "entryCount", "observedGeneration",
			}, v1beta1.GroupConditions())
		}
		all = append(all, fieldmanager.Writer{
			Name: ConfigFinalizer, Kind: kind, Summary: "the one finalizer",
			Claim: fieldmanager.Within(fieldmanager.Path("metadata", "finalizers", value.NewValueInterface(config.Finalizer))),
		}, status)
	}
	return all
}

// statusFields returns the claim of fields and conditions of a status.
func statusFields(fields, conditions []string) (claim fieldmanager.Claim) {
	for _, field := range fields {
		claim.Within = append(claim.Within, fieldmanager.Path("status", field))
	}
	for _, conditionType := range conditions {
		claim.Within = append(claim.Within,
			fieldmanager.Path("status", "conditions", fieldpath.KeyByFields("type", conditionType)))
	}
	return claim
}
