// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// unsendable returns a string of a configuration, or a key of its maps, that does not arrive in an apply as it is. An encoding of the
// configuration would show that as well, but costs as much as all the rest of rendering.
func unsendable(v reflect.Value) (text string, found bool) {
	switch v.Kind() {
	case reflect.String:
		return v.String(), strings.ContainsFunc(v.String(), isUnsendable)
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return unsendable(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			if text, found = unsendable(field); found {
				return text, true
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if text, found = unsendable(v.Index(i)); found {
				return text, true
			}
		}
	case reflect.Map:
		for values := v.MapRange(); values.Next(); {
			for _, part := range []reflect.Value{values.Key(), values.Value()} {
				// Always the same of several, though a map has no order.
				if other, odd := unsendable(part); odd && (!found || other < text) {
					text, found = other, true
				}
			}
		}
		return text, found
	}
	return "", false
}

// firstUnsendable returns the first character of a text that does not arrive as it is.
func firstUnsendable(text string) rune {
	c, _ := utf8.DecodeRuneInString(text[strings.IndexFunc(text, isUnsendable):])
	return c
}

func isUnsendable(c rune) bool { return !runconfig.Sendable(c) }

// holdUnsendable holds the proxy for references that put a character into its template which no apply carries. In the documents that
// the proxyrunner reads such characters are escaped.
func (r *renderer) holdUnsendable() {
	check := func(ref *reference, part any) {
		text, found := unsendable(reflect.ValueOf(part))
		if !found || ref == nil || *ref.hash == "" {
			return // It has no hash once it is held.
		}
		if _, ofSpec := r.whereInSpec(text); ofSpec {
			return
		}
		r.hold(ref, ref.invalid, "The %s of spec.%s cannot be used: it holds the character %U, which the API server cannot take in an apply "+
			"of the proxy.", ref.text(), ref.field, firstUnsendable(text))
	}
	for _, v := range slices.Concat(r.proxy.firstEnv, r.proxy.lastEnv) {
		check(r.referenceOf(v.source), v.config)
	}
	for _, files := range []struct {
		source string
		files  []mounted
	}{
		{sourceWebhooks, r.proxy.secrets},
		{sourceOIDC, r.proxy.issuerBundle},
		{sourceTelemetry, r.proxy.collectorBundle},
		{sourceAuthServer, r.proxy.authServerFiles},
	} {
		for _, file := range files.files {
			check(r.referenceOf(files.source), file.volume)
			check(r.referenceOf(files.source), file.mount)
		}
	}
}

// referenceOf returns the reference that parts of the proxy come from; nil for none.
func (r *renderer) referenceOf(source string) *reference {
	if source == sourceAuthServer {
		return r.authServer
	}
	return r.resolved[source]
}

// validateCharacters finds characters in the rendered intents that no apply can carry.
func (r *renderer) validateCharacters() {
	for _, intent := range r.intents {
		text, found := unsendable(reflect.ValueOf(intent.Config))
		if !found {
			continue
		}
		where, ofSpec := r.whereInSpec(text)
		if !ofSpec && intent.IsOfProxy() && len(r.held) > 0 {
			continue // It is not written.
		}
		if !ofSpec {
			where = fmt.Sprintf("The %s %s", intent.Kind.Kind, intent.Name)
		}
		r.invalidSpec(v1beta1.ReasonInvalidCharacter, "%s holds the character %U, which the API server cannot take in an apply.",
			where, firstUnsendable(text))
		return
	}
}

// whereInSpec returns the first place in the MCPServer's spec that a text has an unsendable character from.
func (r *renderer) whereInSpec(text string) (path string, ok bool) {
	data, err := json.Marshal(r.server.Spec)
	if err != nil {
		return "", false
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		return "", false
	}
	return find(tree, "spec", func(part string) bool {
		return strings.ContainsFunc(part, isUnsendable) && strings.Contains(text, part)
	})
}

func find(tree any, path string, is func(text string) bool) (string, bool) {
	switch tree := tree.(type) {
	case string:
		return path, is(tree)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			if is(key) {
				return "a key of " + path, true
			}
			if at, ok := find(tree[key], path+"."+key, is); ok {
				return at, true
			}
		}
	case []any:
		for i, item := range tree {
			if at, ok := find(item, fmt.Sprintf("%s[%d]", path, i), is); ok {
				return at, true
			}
		}
	}
	return "", false
}
