// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// MaxClaims is how many claims one request can end.
const MaxClaims = 64

// Record is what the operator remembers of a request to take: the claims that stood when it was first seen. They are
// written down before any of them is touched, and no others are: so the request is carried out once, whatever answer is
// lost and whoever restarts, and a claim that its manager makes again later is another one.
type Record struct {
	// Request is the digest of the annotation's value.
	Request string `json:"request"`
	// Claims identify what is taken, see ClaimID.
	Claims []string `json:"claims,omitempty"`
	// Took says in words what is taken.
	Took string `json:"took,omitempty"`
}

// ReadRecord reads a record; it is the zero Record where there is none, or one that cannot be read.
func ReadRecord(text string) (r Record) {
	if json.Unmarshal([]byte(text), &r) != nil {
		return Record{}
	}
	return r
}

// String is the record as it is stored.
func (r Record) String() string {
	text, err := json.Marshal(r)
	if err != nil { // Strings and lists of them can be encoded.
		panic(err)
	}
	return string(text)
}

// IsOf reports whether the record is about a request in these words.
func (r Record) IsOf(text string) bool { return r.Request != "" && r.Request == Digest(text) }

// Add adds a claim, and reports whether it is in the record.
func (r *Record) Add(claim string) bool {
	switch {
	case slices.Contains(r.Claims, claim):
	case len(r.Claims) >= MaxClaims:
		return false
	default:
		r.Claims = append(r.Claims, claim)
	}
	return true
}

// Has reports whether a claim is in the record.
func (r Record) Has(claim string) bool { return slices.Contains(r.Claims, claim) }

// ClaimID identifies the claim that a manager has on an object, as it stands now. It changes when the manager writes again.
func ClaimID(object apply.ObjectRef, owner ownership.Owner) string {
	return Digest(fmt.Sprintf("%s\n%s\n%s\n%s\n%d", object, owner.Manager, owner.Operation, owner.Subresource, owner.Since.Unix()))
}
