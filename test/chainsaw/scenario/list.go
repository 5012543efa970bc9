// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// List says what is known beforehand of the scenarios, each with the reason.
type List struct {
	// LeftOut are scenarios that are not run.
	LeftOut []struct {
		Reason    string   `json:"reason"`
		Scenarios []string `json:"scenarios"`
	} `json:"leftOut"`
	// Skipped are operations that are not run, in any scenario.
	Skipped []struct {
		Reason     string   `json:"reason"`
		Operations []string `json:"operations"`
	} `json:"skipped"`
	// Differences are operations that fail, in every scenario that has them, and a part of what is said then.
	Differences []struct {
		Reason     string            `json:"reason"`
		Operations map[string]string `json:"operations"`
	} `json:"differences"`
}

// ParseList reads a list.
func ParseList(text []byte) (*List, error) {
	list := &List{}
	return list, yaml.UnmarshalStrict(text, list)
}

// Runs reports whether a scenario is run.
func (l *List) Runs(scenario string) bool {
	for _, left := range l.LeftOut {
		if slices.Contains(left.Scenarios, scenario) {
			return false
		}
	}
	return true
}

// Skips reports whether an operation is not run.
func (l *List) Skips(operation string) bool {
	for _, skipped := range l.Skipped {
		if slices.Contains(skipped.Operations, operation) {
			return true
		}
	}
	return false
}

// failure is a part of what an operation says when it fails as listed.
func (l *List) failure(operation string) (part string, listed bool) {
	for _, difference := range l.Differences {
		if part, listed = difference.Operations[operation]; listed {
			break
		}
	}
	return part, listed
}

// Judge returns what is wrong with how an operation ended: it failed and is not listed, is listed and passed, or failed
// otherwise than listed.
func (l *List) Judge(operation string, outcome error) error {
	part, listed := l.failure(operation)
	switch {
	case !listed:
		return outcome
	case outcome == nil:
		return errors.New("it passes, but is listed as a difference: take it off the list")
	case !strings.Contains(outcome.Error(), part):
		return fmt.Errorf("it fails, but not with %q as listed: %w", part, outcome)
	}
	return nil
}

// Figures returns, in Markdown, what a run does that ends as listed. It has the names of all scenarios, and those that run.
func (l *List) Figures(all []string, run []*Scenario) string {
	count := map[string]int{}
	operations, passed := 0, 0
	for _, s := range run {
		for _, o := range s.Operations {
			count[o.Name]++
			if l.Skips(o.Name) {
				continue
			}
			operations++
			if _, listed := l.failure(o.Name); !listed {
				passed++
			}
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %d scenarios run, and %d operations of them: %d pass, %d differ.\n\n| Operations | What differs |\n|---|---|\n",
		len(run), len(all), operations, passed, operations-passed)
	times := func(operations []string) (sum int) {
		for _, o := range operations {
			sum += count[o]
		}
		return sum
	}
	for _, d := range l.Differences {
		fmt.Fprintf(&text, "| %d | %s |\n", times(slices.Collect(maps.Keys(d.Operations))), strings.TrimSpace(d.Reason))
	}
	text.WriteString("\nThese operations of the same scenarios do not run:\n\n| Operations | Why |\n|---|---|\n")
	for _, s := range l.Skipped {
		fmt.Fprintf(&text, "| %d | %s |\n", times(s.Operations), strings.TrimSpace(s.Reason))
	}
	text.WriteString("\nThese scenarios do not run:\n\n| Scenarios | Why |\n|---|---|\n")
	for _, left := range l.LeftOut {
		fmt.Fprintf(&text, "| `%s` | %s |\n", strings.Join(left.Scenarios, "`, `"), strings.TrimSpace(left.Reason))
	}
	return text.String()
}

// Stale returns the listed names that neither a scenario has nor an operation of those that run.
func (l *List) Stale(all []string, run []*Scenario) (stale []string) {
	there := map[string]bool{}
	for _, name := range all {
		there[name] = true
	}
	for _, s := range run {
		for _, o := range s.Operations {
			there[o.Name] = true
		}
	}
	var listed []string
	for _, left := range l.LeftOut {
		listed = append(listed, left.Scenarios...)
	}
	for _, s := range l.Skipped {
		listed = append(listed, s.Operations...)
	}
	for _, d := range l.Differences {
		listed = slices.AppendSeq(listed, maps.Keys(d.Operations))
	}
	for _, name := range listed {
		if !there[name] {
			stale = append(stale, name)
		}
	}
	return stale
}
