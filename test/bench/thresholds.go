// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:embed thresholds.yaml
var thresholdsFile []byte

// threshold is what a figure may be.
type threshold struct {
	// Max is the largest value that is good.
	Max float64 `json:"max"`
	// UpTo is the number of MCPServers up to which it holds; 0 for any.
	UpTo int `json:"upTo,omitempty"`
	// Beyond is what holds for more MCPServers than that.
	Beyond *threshold `json:"beyond,omitempty"`
}

// limit returns the largest value that is good for a number of MCPServers, or nil when there is none.
func (t *threshold) limit(servers int) *float64 {
	for ; t != nil; t = t.Beyond {
		if t.UpTo == 0 || servers <= t.UpTo {
			return &t.Max
		}
	}
	return nil
}

// readThresholds reads thresholds by the keys of figures.
func readThresholds(text []byte) (map[string]threshold, error) {
	var thresholds map[string]threshold
	if err := yaml.UnmarshalStrict(text, &thresholds); err != nil {
		return nil, fmt.Errorf("cannot read the thresholds: %w", err)
	}
	return thresholds, nil
}
