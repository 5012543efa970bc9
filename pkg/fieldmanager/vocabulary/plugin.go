// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package vocabulary

import (
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

// Plugin is the field manager of kubectl freehold. It acts for the user who runs it, and is none of the operator's.
const Plugin = "kubectl-freehold"

// PluginWriter returns what kubectl freehold writes. It is not in the Registry, which has the operator's writers.
func PluginWriter() fieldmanager.Writer {
	return fieldmanager.Writer{
		Name: Plugin, Kind: MCPServer, Summary: "the annotations " + Take + " and " + Yield,
		Claim: within(
			fieldmanager.Path("metadata", "annotations", Take),
			fieldmanager.Path("metadata", "annotations", Yield),
		),
	}
}
