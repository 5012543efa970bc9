// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/jmespath-community/go-jmespath/pkg/binding"
	"github.com/jmespath-community/go-jmespath/pkg/functions"
	"github.com/jmespath-community/go-jmespath/pkg/interpreter"
	"github.com/jmespath-community/go-jmespath/pkg/parsing"
)

// expression is a text that stands for the value of a JMESPath expression.
var expression = regexp.MustCompile(`^\((.+)\)$`)

var functionsOfJMESPath = interpreter.NewFunctionCaller(functions.GetDefaultFunctions()...)

// evaluate returns the value of an expression about an object, or a text that is none as it is.
func evaluate(text string, about any, bindings binding.Bindings) (any, error) {
	found := expression.FindStringSubmatch(text)
	if found == nil {
		return text, nil
	}
	parsed, err := parsing.NewParser().Parse(found[1])
	if err == nil {
		about, err = interpreter.NewInterpreter(about, functionsOfJMESPath, bindings).Execute(parsed, about)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	return about, nil
}

// fill returns a value with the values of its expressions in their place.
func fill(in any, bindings binding.Bindings) (any, error) {
	switch in := in.(type) {
	case map[string]any:
		filled := map[string]any{}
		for key, value := range in {
			value, err := fill(value, bindings)
			if err != nil {
				return nil, err
			}
			filled[key] = value
		}
		return filled, nil
	case []any:
		var filled []any
		for _, item := range in {
			item, err := fill(item, bindings)
			if err != nil {
				return nil, err
			}
			filled = append(filled, item)
		}
		return filled, nil
	case string:
		return evaluate(in, nil, bindings)
	}
	return in, nil
}

// match returns an error for each value that is not as wanted. Objects may have more keys than are wanted, lists not
// more items. A key that is an expression is about the object, a value that is one is about the value in its place.
func match(at string, want, got any, bindings binding.Bindings) error {
	switch want := want.(type) {
	case map[string]any:
		var errs []error
		object, isObject := got.(map[string]any)
		if len(want) == 0 && !isObject {
			return fmt.Errorf("%s: want an object, got %v", at, got)
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			below := at + "." + key
			value, found := object[key]
			if expression.MatchString(key) {
				var err error
				if value, err = evaluate(key, got, bindings); err != nil {
					return fmt.Errorf("%s: %w", below, err)
				}
			} else if !found {
				errs = append(errs, fmt.Errorf("%s: want %v, it is missing", below, want[key]))
				continue
			}
			errs = append(errs, match(below, want[key], value, bindings))
		}
		return errors.Join(errs...)
	case []any:
		list, _ := got.([]any)
		if len(want) != len(list) {
			return fmt.Errorf("%s: want %v, got %v", at, want, got)
		}
		var errs []error
		for i := range want {
			errs = append(errs, match(fmt.Sprintf("%s[%d]", at, i), want[i], list[i], bindings))
		}
		return errors.Join(errs...)
	case string:
		value, err := evaluate(want, got, bindings)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		return equal(at, value, got)
	}
	return equal(at, want, got)
}

func equal(at string, want, got any) error {
	if !reflect.DeepEqual(want, got) {
		return fmt.Errorf("%s: want %#v, got %#v", at, want, got)
	}
	return nil
}
