// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Names of the permission profiles that ToolHive builds in.
const (
	ProfileNone    = "none"
	ProfileNetwork = "network"
	// ProfileStdio is an old name of ProfileNone.
	ProfileStdio = "stdio"
)

// PermissionProfile is what the MCP server may reach. On Kubernetes it is recorded, not enforced.
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

// BuiltinProfile returns a new copy of a built-in profile, and whether there is one of that name.
func BuiltinProfile(name string) (*PermissionProfile, bool) {
	switch name {
	case ProfileNetwork:
		return builtin(ProfileNetwork, true), true
	case ProfileNone, ProfileStdio:
		return builtin(ProfileNone, false), true
	}
	return nil, false
}

// ParseProfile reads a profile from JSON, as the proxyrunner would: unknown keys are ignored.
func ParseProfile(text string) (*PermissionProfile, error) {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return nil, fmt.Errorf("not a JSON object")
	}
	profile := &PermissionProfile{}
	if err := json.Unmarshal([]byte(text), profile); err != nil {
		return nil, err
	}
	return profile, nil
}

func builtin(name string, allowAll bool) *PermissionProfile {
	return &PermissionProfile{
		Name: name,
		Network: &NetworkPermissions{
			Outbound: &OutboundPermissions{InsecureAllowAll: allowAll},
			Inbound:  &InboundPermissions{},
		},
	}
}
