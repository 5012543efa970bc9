// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
)

// Numbers are what suites count for the documentation. The zero value has none.
type Numbers struct {
	mu    sync.Mutex
	count map[string]int
}

// Add adds to a number. What is how it is called in the documentation.
func (n *Numbers) Add(what string, count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.count == nil {
		n.count = map[string]int{}
	}
	n.count[what] += count
}

// Table is a Markdown table of the numbers, by what they count.
func (n *Numbers) Table() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var table bytes.Buffer
	table.WriteString("| What | Number |\n|---|---|\n")
	for _, what := range slices.Sorted(maps.Keys(n.count)) {
		fmt.Fprintf(&table, "| %s | %d |\n", what, n.count[what])
	}
	return table.String()
}

// Publish writes the table into a document, between the lines <!-- BEGIN numbers --> and <!-- END numbers -->.
func (n *Numbers) Publish(document string) error {
	const begin, end = "<!-- BEGIN numbers -->\n", "<!-- END numbers -->"
	old, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(old, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		return fmt.Errorf("%s has no lines between which numbers could stand", document)
	}
	renewed := slices.Concat(before, []byte(begin), []byte(n.Table()), []byte(end), after)
	return os.WriteFile(document, renewed, 0o644)
}
