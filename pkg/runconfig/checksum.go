// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"maps"
	"slices"
)

// Checksum is ToolHive's checksum of a ConfigMap: SHA-256, in hexadecimal, over each key and its value,
// sorted by key, of the data and then of the labels. It is the same string as ToolHive's operator computes,
// so that a takeover of an unchanged MCPServer changes nothing.
func Checksum(data, labels map[string]string) string {
	h := sha256.New()
	write(h, data)
	write(h, labels)
	return hex.EncodeToString(h.Sum(nil))
}

func write(h hash.Hash, m map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		// A hash never returns an error.
		_, _ = io.WriteString(h, key)
		_, _ = io.WriteString(h, m[key])
	}
}
