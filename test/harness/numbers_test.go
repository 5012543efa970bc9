// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRenewNumbers renews a table with what one package has counted: the numbers of the others stay, and the sum follows.
func TestRenewNumbers(t *testing.T) {
	const old = `| What | Number |
|---|---|
| other writers | 28 |
| ` + requestsOfAll + ` | 30 |
| ` + requestsOf + `drift | 10 |
| ` + requestsOf + `faults | 20 |
| scenarios | 12 |
`
	var n Numbers
	n.Add("scenarios", 6)
	n.Add("scenarios", 7)
	n.Add(requestsOf+"drift", 11)
	n.Add(requestsOf+"input", 5)
	const want = `| What | Number |
|---|---|
| other writers | 28 |
| ` + requestsOfAll + ` | 36 |
| ` + requestsOf + `drift | 11 |
| ` + requestsOf + `faults | 20 |
| ` + requestsOf + `input | 5 |
| scenarios | 13 |
`
	if diff := cmp.Diff(want, n.renew(old)); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
}
