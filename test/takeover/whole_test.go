// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"fmt"
)

// checkWhole judges all requests that Freehold's operators have made in the suite.
func checkWhole(ctx context.Context) error {
	violations, requests, err := env.Violations(ctx)
	if err != nil {
		return fmt.Errorf("the invariants cannot be checked: %w", err)
	}
	fmt.Printf("Invariants: looked at %d requests of operators, %d violations\n", requests, len(violations))
	for _, v := range violations {
		fmt.Println(v)
	}
	if len(violations) > 0 {
		return fmt.Errorf("--- FAIL: %d requests of operators should not have been", len(violations))
	}
	return nil
}
