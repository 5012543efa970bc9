// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// Explain says why an object that is not the Owner's is left alone, and what the user can do about it. exists reports whether
// there is an MCPServer of the name in Verdict.Other; kubectl makes a command with these arguments.
func (v Verdict) Explain(ref apply.ObjectRef, exists bool, kubectl func(...string) string) string {
	switch {
	case v.Other == "":
		return "an object with that name exists, and it is not a child of this MCPServer; rename or delete one of them"
	case exists:
		return fmt.Sprintf("it belongs to MCPServer %s: a child of each MCPServer has this name. "+
			"Create one of the two again under another name", v.Other)
	default:
		return fmt.Sprintf("MCPServer %s, since deleted, left it behind. If it is no longer needed: %s",
			v.Other, kubectl("delete", "-n", ref.Namespace, ref.String()))
	}
}
