// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"errors"

	goyaml "go.yaml.in/yaml/v3"
)

// mostExpanded is how long the texts in a YAML document may be together, in bytes, with each alias replaced by what it stands for. No
// ConfigMap holds more than 1 MiB, so the proxyrunner could not be given it either. The parser that turns YAML into JSON bounds the number
// of nodes, and not the length of their texts.
const mostExpanded = 1 << 20

var errExpansion = errors.New("its aliases stand for more than 1 MiB of text; write it without aliases")

// expansion has the lengths of nodes that aliases stand for.
type expansion map[*goyaml.Node]int

// length returns how long the texts in a node are together, at most a little over mostExpanded.
func (e expansion) length(node *goyaml.Node) int {
	if node.Alias != nil {
		known, ok := e[node.Alias]
		if !ok {
			e[node.Alias] = mostExpanded + 1 // as long as it is within itself
			known = e.length(node.Alias)
			e[node.Alias] = known
		}
		return known
	}
	length := len(node.Value) + 1
	for _, part := range node.Content {
		if length += e.length(part); length > mostExpanded {
			return mostExpanded + 1
		}
	}
	return length
}
