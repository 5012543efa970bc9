// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/freehold-dev/freehold/hack/operator"
)

// Metric returns the sum of those series of an operator's metric that have all the labels, each given as
// name="value". A metric that has no such series is 0: a counter appears when it first counts.
func Metric(ctx context.Context, p *operator.Process, name string, labels ...string) (float64, error) {
	text, err := p.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	return sum(text, name, labels)
}

func sum(text, name string, labels []string) (total float64, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		space := strings.LastIndexByte(line, ' ')
		if space < 0 {
			continue
		}
		series := line[:space]
		if family, _, _ := strings.Cut(series, "{"); family != name || !hasAll(series, labels) {
			continue
		}
		value, err := strconv.ParseFloat(line[space+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", series, err)
		}
		total += value
	}
	return total, nil
}

func hasAll(series string, labels []string) bool {
	for _, label := range labels {
		if !strings.Contains(series, label) {
			return false
		}
	}
	return true
}
