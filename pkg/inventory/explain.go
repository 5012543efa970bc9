// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/shell"
)

// Explain says why an object that is not the Owner's is left alone, and what the user can do about it. exists reports whether
// there is an MCPServer of the name in Verdict.Other.
func (v Verdict) Explain(ref apply.ObjectRef, exists bool) string {
	switch {
	case v.Other == "":
		return "an object of that name exists and was not made for this MCPServer; rename or delete one of them"
	case exists:
		return fmt.Sprintf("it belongs to MCPServer %s: a child of either MCPServer has this name. "+
			"Make one of the two anew under another name", v.Other)
	default:
		return fmt.Sprintf("MCPServer %s, which is gone, has left it behind. If nobody needs it any more: %s",
			v.Other, shell.Command("kubectl", "delete", "-n", ref.Namespace, ref.String()))
	}
}
