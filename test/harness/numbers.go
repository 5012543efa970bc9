// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// requestsOf begins the name of the number of requests of one package, and requestsOfAll is the name of their sum.
const (
	requestsOf    = "requests of operators looked at in the audit log, none of which should not have been: "
	requestsOfAll = requestsOf + "all packages"
)

// addRequests adds to the number of requests in the audit log that this package has looked at.
func (n *Numbers) addRequests(count int) {
	dir, err := os.Getwd() // that of the package: go test runs it there
	if err != nil {
		dir = "?"
	}
	n.Add(requestsOf+filepath.Base(dir), count)
}

// Publish writes the numbers into a document: into the Markdown table between the lines <!-- BEGIN numbers --> and
// <!-- END numbers -->. A number that this run has not counted stays as it is, since each package counts its own.
func (n *Numbers) Publish(document string) error {
	const begin, end = "<!-- BEGIN numbers -->\n", "<!-- END numbers -->"
	old, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(old, []byte(begin))
	table, after, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		return fmt.Errorf("%s has no lines between which numbers could stand", document)
	}
	renewed := slices.Concat(before, []byte(begin), []byte(n.renew(string(table))), []byte(end), after)
	return os.WriteFile(document, renewed, 0o644)
}

// renew returns a table with the numbers of this run in place of those with the same names.
func (n *Numbers) renew(table string) string {
	numbers := map[string]int{}
	for _, row := range tableRow.FindAllStringSubmatch(table, -1) {
		numbers[row[1]], _ = strconv.Atoi(row[2])
	}
	n.mu.Lock()
	maps.Copy(numbers, n.count)
	n.mu.Unlock()
	delete(numbers, requestsOfAll)
	sum := 0
	for what, number := range numbers {
		if strings.HasPrefix(what, requestsOf) {
			sum += number
		}
	}
	numbers[requestsOfAll] = sum
	var text strings.Builder
	text.WriteString("| What | Number |\n|---|---|\n")
	for _, what := range slices.Sorted(maps.Keys(numbers)) {
		fmt.Fprintf(&text, "| %s | %d |\n", what, numbers[what])
	}
	return text.String()
}

var tableRow = regexp.MustCompile(`(?m)^\| (.*) \| (\d+) \|$`)
