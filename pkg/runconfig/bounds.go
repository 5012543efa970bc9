// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// Limits of an authorization configuration, for the same reason as those of a policy: parsers need a hundred bytes and more for a value
// of two, and what Cedar makes of a list takes time with the square of the number of lists in it that have the same sum. ToolHive's
// proxyrunner has no such limits.
const (
	// mostDocumentBytes is the length of a document. A ConfigMap holds 1 MiB at most, and the RunConfig has to hold the document and more.
	mostDocumentBytes = 512 << 10
	// mostDocumentParts is how many commas, line breaks and opening brackets a document may have, those in its texts included.
	mostDocumentParts = 100_000
	// mostEntityBytes is the length of the JSON list of entities, and mostEntityBrackets how many lists and objects are in it.
	mostEntityBytes, mostEntityBrackets = 256 << 10, 20_000
	// mostInList is how many lists and objects there may be in one list of an entity's attributes.
	mostInList = 1000
	// attributes is at how many brackets the values of an entity's attributes begin: [ { "attrs": {
	attributes = 3
)

// large has one configuration at a time parsed that is longer than largeBytes: the operator's memory is for one, not for one of each
// of its workers.
var large sync.Mutex

const largeBytes = 32 << 10

// oneLarge waits for its turn, if a configuration of so many bytes needs one. It returns what ends the turn.
func oneLarge(bytes int) (done func()) {
	if bytes <= largeBytes {
		return func() {}
	}
	large.Lock()
	return large.Unlock
}

// boundDocument returns an error for a document that is too large to be parsed.
func boundDocument(text string) error {
	if len(text) > mostDocumentBytes {
		return fmt.Errorf("it has %d bytes; %d is the most", len(text), mostDocumentBytes)
	}
	parts := 0
	for i := range len(text) {
		switch text[i] {
		case ',', '\n', '[', '{':
			parts++
		}
	}
	if parts > mostDocumentParts {
		return fmt.Errorf("it has %d commas, line breaks and opening brackets; %d is the most", parts, mostDocumentParts)
	}
	return nil
}

// boundEntities returns an error for a JSON list of entities that is too large to be parsed. What is not valid is left to the parser.
func boundEntities(text string) error {
	if len(text) > mostEntityBytes {
		return fmt.Errorf("they have %d bytes; %d is the most", len(text), mostEntityBytes)
	}
	type open struct {
		bracket json.Delim
		holds   int
	}
	var around []open
	for brackets, decoder := 0, json.NewDecoder(strings.NewReader(text)); ; {
		token, err := decoder.Token()
		if err != nil {
			return nil //nolint:nilerr // The parser says what is wrong with it, or that it ends here.
		}
		bracket, ok := token.(json.Delim)
		switch {
		case !ok:
		case bracket == ']' || bracket == '}':
			around = around[:len(around)-1]
		default:
			if n := len(around); n > attributes {
				if around[n-1].holds++; around[n-1].bracket == '[' && around[n-1].holds > mostInList {
					return fmt.Errorf("a list of an entity's attributes holds more than %d lists and objects", mostInList)
				}
			}
			if around = append(around, open{bracket: bracket}); len(around) > mostNesting {
				return fmt.Errorf("their brackets are nested more than %d deep", mostNesting)
			}
			if brackets++; brackets > mostEntityBrackets {
				return fmt.Errorf("there are more than %d lists and objects in them", mostEntityBrackets)
			}
		}
	}
}
