// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"fmt"
	"io"

	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

// settingSentence says what differs, and what to do about it.
func settingSentence(s cluster.OperatorSetting) string {
	if s.Hidden {
		return fmt.Sprintf("%s of ToolHive's operator (%s in namespace %s) has a value that is not in the Deployment; Freehold's operator has %s. "+
			"If the two differ, give Freehold's operator the same value before the takeover.", s.Variable, s.Object, s.Namespace, s.Has)
	}
	return fmt.Sprintf("ToolHive's operator (%s in namespace %s) has %s=%s; Freehold's has %s. To keep that, give Freehold's operator "+
		"%s, or the same variable, before the takeover.", s.Object, s.Namespace, s.Variable, s.Value, s.Has, s.Give)
}

// operatorSettings prints the settings that differ.
func operatorSettings(to io.Writer, all []cluster.OperatorSetting) {
	for _, s := range all {
		line(to, "%s", settingSentence(s))
	}
}
