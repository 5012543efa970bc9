// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/freehold-dev/freehold/pkg/shell"
)

// Caller makes the commands that the plugin prints for its user to paste. They have the options by which the user has named the cluster,
// themselves and the operator, so that they are about what the plugin has looked at. The zero value has no options.
type Caller struct {
	// Target are the options that kubectl has too.
	Target []string
	// Operator is the one that names the operator, and Arguments are those that give it arguments.
	Operator, Arguments []string
}

// Kubectl returns a call of kubectl.
func (c Caller) Kubectl(words ...string) string {
	return shell.Kubectl(slices.Concat(words, c.Target)...)
}

// Freehold returns a call of one of the plugin's own verbs.
func (c Caller) Freehold(verb string, words ...string) string {
	words = append([]string{"freehold", verb}, words...)
	options := slices.Concat(c.Operator, c.Arguments)
	switch verb {
	case "owners", "crd", "handback":
		options = nil
	case "status", "doctor":
		options = c.Operator
	}
	return shell.Kubectl(slices.Concat(words, c.Target, options)...)
}
