// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Hashes are those of the objects that an MCPServer refers to and that can be used, by the field of its spec, as in their status.
type Hashes map[string]string

// hashBytes is how much of a SHA-256 sum a hash shows: enough to distinguish two specs of one object.
const hashBytes = 8

// Hash identifies a spec: specs that the API server stores alike have the same hash, in whatever order their keys are. It is not
// ToolHive's, which depends on the names of Go types; no program compares the two.
func Hash(spec any) (string, error) {
	document, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	// What is stored as it was written, such as a policy, has its keys in any order.
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var content any
	if err := decoder.Decode(&content); err != nil {
		return "", err
	}
	if document, err = json.Marshal(content); err != nil {
		return "", err
	}
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:hashBytes]), nil
}
