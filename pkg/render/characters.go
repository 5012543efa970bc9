// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// The API server reads the body of an apply as YAML, though it is JSON. YAML cannot hold some characters as they are:
// an apply with one of them is refused as a bad request, and U+0085 is even stored as a space, so that what we own
// would always differ from what we want.

// sendable reports whether a character arrives in an apply as it was sent. (Those below a space are escaped in
// JSON, and arrive.)
func sendable(c rune) bool {
	return c < 0x7f || c > 0x9f && c != 0xfffe && c != 0xffff
}

// allSendable reports whether the strings of a configuration, the keys of its maps among them, arrive as they are. An encoding of
// it would show that as well, but costs as much as all the rest of rendering.
func allSendable(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return !strings.ContainsFunc(v.String(), func(c rune) bool { return !sendable(c) })
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || allSendable(v.Elem())
	case reflect.Struct:
		for _, field := range v.Fields() {
			if !allSendable(field) {
				return false
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if !allSendable(v.Index(i)) {
				return false
			}
		}
	case reflect.Map:
		for values := v.MapRange(); values.Next(); {
			if !allSendable(values.Key()) || !allSendable(values.Value()) {
				return false
			}
		}
	}
	return true
}

// validateCharacters finds characters in the rendered intents that no apply can carry.
func (r *renderer) validateCharacters() {
	for _, intent := range r.intents {
		if allSendable(reflect.ValueOf(intent.Config)) {
			continue
		}
		body, err := json.Marshal(intent.Config)
		if err != nil {
			r.invalidSpec(v1beta1.ReasonInvalidCharacter, "The %s %s cannot be written: %s.", intent.Kind.Kind, intent.Name, oneLine(err))
			continue
		}
		at := bytes.IndexFunc(body, func(c rune) bool { return !sendable(c) })
		if at < 0 {
			continue
		}
		c, _ := utf8.DecodeRune(body[at:])
		where := "a ConfigMap that the spec names"
		if path, ok := r.whereInSpec(c); ok {
			where = path
		}
		r.invalidSpec(v1beta1.ReasonInvalidCharacter, "%s holds the character %U, which the API server cannot take in an apply.", where, c)
		return
	}
}

// whereInSpec returns the first place of a character in the MCPServer's spec.
func (r *renderer) whereInSpec(c rune) (path string, ok bool) {
	data, err := json.Marshal(r.server.Spec)
	if err != nil {
		return "", false
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		return "", false
	}
	return find(tree, "spec", string(c))
}

func find(tree any, path, text string) (string, bool) {
	switch tree := tree.(type) {
	case string:
		return path, strings.Contains(tree, text)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			if strings.Contains(key, text) {
				return "a key of " + path, true
			}
			if at, ok := find(tree[key], path+"."+key, text); ok {
				return at, true
			}
		}
	case []any:
		for i, item := range tree {
			if at, ok := find(item, fmt.Sprintf("%s[%d]", path, i), text); ok {
				return at, true
			}
		}
	}
	return "", false
}
