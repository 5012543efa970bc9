// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Kubernetes computes quantities with as many digits as they have: to read 1e-999999999, or to compare
// 1e999999999 with anything, takes minutes and gigabytes. podTemplateSpec has no schema that would keep such
// a value out, so it is refused by its looks, before anything reads it.
const (
	// maxQuantityLength of a quantity's text; the longest sensible ones have about 25 characters.
	maxQuantityLength = 64
	// maxQuantityExponent, up or down; the API's own suffixes go from nano to exa.
	maxQuantityExponent = 30
)

// handy reports whether a quantity's text can be read and compared at no great cost. It need not be valid.
func handy(text string) bool {
	if len(text) > maxQuantityLength {
		return false
	}
	_, exponent, found := strings.Cut(strings.ToLower(text), "e")
	if !found {
		return true
	}
	power, err := strconv.ParseInt(strings.TrimSpace(exponent), 10, 64)
	if err != nil {
		// The suffixes E and Ei are no exponents. An exponent is invalid here only if it has too many digits.
		return strings.Trim(exponent, "+-0123456789 ") != "" || exponent == ""
	}
	return -maxQuantityExponent <= power && power <= maxQuantityExponent
}

func unhandy(text string) bool { return !handy(text) }

// unreadable reports whether a handy text is no quantity.
func unreadable(text string) bool {
	_, err := resource.ParseQuantity(text)
	return err != nil
}

// quantities returns where in a pod template, as JSON, there are quantities of a certain kind.
func quantities(raw []byte, wanted func(text string) bool) []string {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		// What is wrong with it is reported where it is finally read.
		return nil
	}
	var found []string
	var walk func(path string, node any)
	check := func(path string, value any) {
		switch value := value.(type) {
		case string:
			if wanted(value) {
				found = append(found, path)
			}
		case json.Number:
			if wanted(value.String()) {
				found = append(found, path)
			}
		}
	}
	walk = func(path string, node any) {
		switch node := node.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(node)) {
				value, at := node[key], path+"."+key
				switch key {
				case "sizeLimit", "divisor":
					check(at, value)
				case "limits", "requests", "overhead":
					if list, ok := value.(map[string]any); ok {
						for _, name := range slices.Sorted(maps.Keys(list)) {
							check(at+"."+name, list[name])
						}
					}
				}
				walk(at, value)
			}
		case []any:
			for i, item := range node {
				walk(fmt.Sprintf("%s[%d]", path, i), item)
			}
		}
	}
	walk(podTemplatePath, tree)
	return found
}
