// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !reworded

package simulation

import "strings"

// asWritten leaves messages of conditions as they are.
var asWritten = strings.NewReplacer()
