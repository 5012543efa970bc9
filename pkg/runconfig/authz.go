// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// AuthzVersion is the version of an authorization configuration that is written inline.
	AuthzVersion = "1.0"
	// AuthzTypeCedar is the only type of authorization configuration that an MCPServer itself can hold.
	AuthzTypeCedar = "cedarv1"
	// AuthzKey is the key, and the file name, of an authorization configuration.
	AuthzKey = "authz.json"
	// NoEntities is a list of no Cedar entities.
	NoEntities = "[]"
)

// Authz is an authorization configuration.
type Authz struct {
	Version string `json:"version"`
	Type    string `json:"type"`
	Cedar   *Cedar `json:"cedar"`
}

// Cedar is an authorization policy in Cedar's language.
type Cedar struct {
	Policies []string `json:"policies"`
	// EntitiesJSON is a JSON list of entities, in a string.
	EntitiesJSON    string `json:"entities_json"`
	GroupClaimName  string `json:"group_claim_name,omitempty"`
	RoleClaimName   string `json:"role_claim_name,omitempty"`
	GroupEntityType string `json:"group_entity_type,omitempty"`
}

// ParseAuthz reads an authorization configuration from YAML or JSON and checks it. Keys that have no meaning
// for an MCPServer are dropped, among them the primary upstream provider.
func ParseAuthz(text string) (*Authz, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("it is empty")
	}
	authz := &Authz{}
	if err := yaml.Unmarshal([]byte(text), authz); err != nil {
		return nil, err
	}
	if authz.Version == "" {
		return nil, errors.New("version is missing")
	}
	if authz.Type != AuthzTypeCedar {
		return nil, fmt.Errorf("type is %q, and only %q can be used", authz.Type, AuthzTypeCedar)
	}
	if authz.Cedar == nil {
		return nil, errors.New("cedar is missing")
	}
	if err := authz.Cedar.Validate(); err != nil {
		return nil, err
	}
	return authz, nil
}

// Validate checks what can be told without reading Cedar's language: that there is a policy, that none is
// blank, and that the entities are a JSON list.
func (c *Cedar) Validate() error {
	if len(c.Policies) == 0 {
		return errors.New("there is no policy")
	}
	for i, policy := range c.Policies {
		if strings.TrimSpace(policy) == "" {
			return fmt.Errorf("policies[%d] is blank", i)
		}
	}
	if c.EntitiesJSON == "" {
		return nil
	}
	var entities []json.RawMessage
	if err := json.Unmarshal([]byte(c.EntitiesJSON), &entities); err != nil {
		return fmt.Errorf("the entities are not a JSON list: %w", err)
	}
	if entities == nil {
		return errors.New("the entities are not a JSON list: they are null")
	}
	return nil
}

// InlineDocument is the configuration as ToolHive stores an inline one in a ConfigMap of its own: compact,
// keys in alphabetical order, without claim names.
func InlineDocument(policies []string, entitiesJSON string) (string, error) {
	type cedar struct {
		EntitiesJSON string   `json:"entities_json"`
		Policies     []string `json:"policies"`
	}
	data, err := json.Marshal(struct {
		Cedar   cedar  `json:"cedar"`
		Type    string `json:"type"`
		Version string `json:"version"`
	}{cedar{entitiesJSON, policies}, AuthzTypeCedar, AuthzVersion})
	if err != nil {
		return "", fmt.Errorf("authorization configuration: %w", err)
	}
	return string(data), nil
}
