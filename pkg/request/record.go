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

// MaxClaims is the number of claims that one request can end.
const MaxClaims = 64

// Record is what the operator stores about a request to take: the claims that stood when it first saw the request. It
// stores them before it touches any of them, and touches no others. So it carries the request out once, even if an answer
// is lost or an operator restarts, and a claim that its manager makes again later is a new one.
type Record struct {
	// Request is the digest of the annotation's value.
	Request string `json:"request"`
	// Claims identify the claims to take, see ClaimID.
	Claims []string `json:"claims,omitempty"`
	// Took describes the taken fields in words.
	Took string `json:"took,omitempty"`
}

// ReadRecord parses a record. It returns the zero Record for an empty or unreadable text.
func ReadRecord(text string) (r Record) {
	if json.Unmarshal([]byte(text), &r) != nil {
		return Record{}
	}
	return r
}

// String returns the record as it is stored.
func (r Record) String() string {
	text, err := json.Marshal(r)
	if err != nil { // Strings and lists of them can be encoded.
		panic(err)
	}
	return string(text)
}

// IsOf reports whether the record is about a request with this text.
func (r Record) IsOf(text string) bool { return r.Request != "" && r.Request == Digest(text) }

// Anew returns a text with the same entries as a request that is none of those that are spent: the operator carries each out once, and
// knows it by its text. So one write makes a request again, even while the operator does not run. To remove the annotation first would
// not, unless an operator saw it gone. The comma goes in front, since behind an open bracket it would belong to the last entry.
func Anew(text string, spent func(text string) bool) string {
	for spent(text) {
		text = "," + text
	}
	return text
}

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

// ClaimID returns an identifier of a manager's current claim on an object. It changes when the manager writes again.
func ClaimID(object apply.ObjectRef, owner ownership.Owner) string {
	return Digest(fmt.Sprintf("%s\n%s\n%s\n%s\n%d", object, owner.Manager, owner.Operation, owner.Subresource, owner.Since.Unix()))
}
