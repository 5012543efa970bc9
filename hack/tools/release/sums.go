// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sumsName is the file with the checksums of the others, as sha256sum -c reads it.
const sumsName = "SHA256SUMS"

// writeSums writes the checksums of the files in a directory, in the order of their names. Directories are left out: the only
// one is the OCI layout, each file of which is named by its own checksum.
func writeSums(directory string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, entry := range entries {
		if entry.IsDir() || entry.Name() == sumsName {
			continue
		}
		data, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum(data), entry.Name())
	}
	return os.WriteFile(filepath.Join(directory, sumsName), []byte(sums.String()), 0o644)
}
