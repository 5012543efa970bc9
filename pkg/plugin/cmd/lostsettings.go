// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

// lostSettings returns the settings of ToolHive's operators for some MCPServers that the operator of Freehold's does not have which
// takes these over, each once.
func (s *planner) lostSettings(servers []*v1beta1.MCPServer) (lost []cluster.OperatorSetting, err error) {
	if len(servers) == 0 {
		return nil, nil
	}
	environments, err := s.client.ToolHiveEnvironments()
	if err != nil {
		return nil, err
	}
	for i := range environments {
		theirs := &environments[i]
		for _, server := range servers {
			if !theirs.Covers(server) {
				continue
			}
			ours, err := s.settingsFor(server)
			if err != nil {
				return nil, err
			}
			for _, setting := range theirs.NotIn(ours) {
				if !slices.Contains(lost, setting) {
					lost = append(lost, setting)
				}
			}
		}
	}
	return lost, nil
}
