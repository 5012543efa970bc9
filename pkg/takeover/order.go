// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import "github.com/freehold-dev/freehold/pkg/inventory"

// Moment is when the operator takes an object over.
type Moment string

// The moments, in their order.
//
// The order keeps ToolHive's runners able to start again at any time, and ours from writing. A runner writes unless its
// generation is below the gate on the backend's pods. That of ToolHive's runners is the generation of the MCPServer, of
// ours it is 1. So where the gate is above 1 the proxies are replaced first and then the backend is taken as it is,
// without a restart; where it is not, the backend is taken first, which closes the gate and rolls the pods, and then
// the proxies. The rights to write go when no runner of ToolHive is left. The binding comes last: the API server
// refuses a binding of a Role that has more rights than the binder, and ToolHive's Role does.
const (
	AtOnce       Moment = "at once"
	AfterBackend Moment = "once the backend's new pods are ready"
	AfterProxies Moment = "once no proxy of ToolHive's is left"
	AfterRole    Moment = "once the Role is written"
)

// MomentOf returns when the operator takes a child over. Closed reports that the gate on the backend's pods keeps the
// operator's proxyrunners from writing as it is; without a backend it is closed.
func MomentOf(child *inventory.Child, closed bool) Moment {
	switch child {
	case inventory.Proxy:
		if !closed {
			return AfterBackend
		}
	case inventory.Backend, inventory.HeadlessService, inventory.BackendService:
		if closed {
			return AfterProxies
		}
	case inventory.RunnerRole:
		return AfterProxies
	case inventory.RunnerBinding:
		return AfterRole
	}
	return AtOnce
}
