// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkout tells which commit a recorded figure was measured with.
package checkout

import (
	"context"
	"os/exec"
	"strings"
)

// Commit returns the first twelve digits of the commit that is checked out around the working directory, with "-dirty" behind them if
// tracked files differ from it; "unknown" outside of a checkout and without git. A tag at that commit takes the place of the digits.
func Commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
