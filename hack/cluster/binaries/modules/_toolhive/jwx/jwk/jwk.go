// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jwk stands in for github.com/lestrrat-go/jwx/v4/jwk, as far as ToolHive uses it. Key sets come from JWKS fetches
// only, and those fail, see the stand-in of jwkfetch: a Set has no keys.
package jwk

import (
	"errors"
	"iter"
)

var errNoKeys = errors.New("jwx is not in this build of ToolHive: there are no keys")

// Key is a key that there is none of.
type Key any

// Set is an empty set of keys.
type Set struct{}

// NewSet returns an empty set.
func NewSet() Set { return Set{} }

// All returns no keys.
func (Set) All() iter.Seq2[int, Key] { return func(func(int, Key) bool) {} }

// AddKey fails.
func (Set) AddKey(Key) error { return errNoKeys }

// LookupKeyID finds nothing.
func (Set) LookupKeyID(string) (key Key, found bool) { return nil, false }

// IsUnsupportedKey reports true of any key.
func IsUnsupportedKey(Key) bool { return true }

// Export fails.
func Export[T any](Key) (key T, err error) { return key, errNoKeys }
