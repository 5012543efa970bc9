// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build reworded

package simulation

import "strings"

// asWritten gives messages of conditions the words of a build without the tag reworded.
var asWritten = strings.NewReplacer("In other words: ", "", " That is all.", "", " (and ", " (+")
