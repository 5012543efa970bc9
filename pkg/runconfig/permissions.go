// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

// PermissionProfile says what the MCP server may reach. On Kubernetes it is recorded, not enforced.
type PermissionProfile struct {
	Name string `json:"name,omitempty"`
	// Read and Write are mounts, as path or host-path:container-path.
	Read       []string            `json:"read,omitempty"`
	Write      []string            `json:"write,omitempty"`
	Network    *NetworkPermissions `json:"network,omitempty"`
	Privileged bool                `json:"privileged,omitempty"`
}

// NetworkPermissions are permissions on the network.
type NetworkPermissions struct {
	Mode     string               `json:"mode,omitempty"`
	Outbound *OutboundPermissions `json:"outbound,omitempty"`
	Inbound  *InboundPermissions  `json:"inbound,omitempty"`
}

// OutboundPermissions are permissions to connect to others.
type OutboundPermissions struct {
	InsecureAllowAll bool     `json:"insecure_allow_all,omitempty"`
	AllowHost        []string `json:"allow_host,omitempty"`
	AllowPort        []int    `json:"allow_port,omitempty"`
}

// InboundPermissions are permissions of others to connect.
type InboundPermissions struct {
	AllowHost []string `json:"allow_host,omitempty"`
}

// NetworkProfile returns a new copy of the profile that ToolHive calls network: the MCP server may connect to everything.
func NetworkProfile() *PermissionProfile {
	return &PermissionProfile{
		Name: "network",
		Network: &NetworkPermissions{
			Outbound: &OutboundPermissions{InsecureAllowAll: true},
			Inbound:  &InboundPermissions{},
		},
	}
}
