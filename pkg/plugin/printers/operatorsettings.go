// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"fmt"
	"io"

	"github.com/freehold-dev/freehold/pkg/settings"
)

// OperatorSetting is a setting of ToolHive's operator that Freehold's operator has otherwise, so that a takeover changes what it affects.
type OperatorSetting struct {
	// Object is the Deployment of ToolHive's operator, and Namespace its namespace.
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	settings.Difference
}

// sentence says what differs, and what to do about it.
func (s OperatorSetting) sentence() string {
	if s.Hidden {
		return fmt.Sprintf("%s of ToolHive's operator (%s in namespace %s) has a value that is not in the Deployment; Freehold's operator has %s. "+
			"If the two differ, give Freehold's operator the same value before the takeover.", s.Variable, s.Object, s.Namespace, s.Has)
	}
	return fmt.Sprintf("ToolHive's operator (%s in namespace %s) has %s=%s; Freehold's has %s. To keep that, give Freehold's operator "+
		"%s, or the same variable, before the takeover.", s.Object, s.Namespace, s.Variable, s.Value, s.Has, s.Give)
}

// operatorSettings prints the settings that differ.
func operatorSettings(to io.Writer, all []OperatorSetting) {
	for _, s := range all {
		line(to, "%s", s.sentence())
	}
}
