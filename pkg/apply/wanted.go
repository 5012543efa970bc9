// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// identify computes the digest of the wanted configuration, without the source. It includes the names of the references:
// the object must record each one, so another set of them is another intent. What an attempt remembers is found by the digest of the
// next one, at its beginning: with a state, that is the digest from before the whole object was read.
func (w *writer[L, A]) identify(a *attempt[L, A]) error {
	w.noteEmpty(a)
	rendered, err := marshal(a.want)
	if err != nil {
		return err
	}
	for _, reference := range a.Source.References {
		rendered = append(append(rendered, ' '), reference.Name...)
	}
	a.intent = digestOf(rendered)
	return nil
}

// noteEmpty takes the source off the wanted configuration, and notes whether that names nothing.
func (w *writer[L, A]) noteEmpty(a *attempt[L, A]) {
	w.dropStamps(a.want)
	a.empty = namesNothing(reflect.ValueOf(a.want).Elem())
}

// preserve copies into the wanted configuration what may be preserved of the kept values, and computes the digest anew.
func (w *writer[L, A]) preserve(a *attempt[L, A], kept any) error {
	if a.Preserve == nil || kept == nil {
		return nil
	}
	a.Preserve(a.want, kept)
	return w.canonicalise(a)
}

// canonicalise brings the wanted configuration into the form in which the API server would show it as owned, and computes its digest.
func (w *writer[L, A]) canonicalise(a *attempt[L, A]) error {
	omitZeros(a.want, *new(L))
	w.dropStamps(a.want)
	rendered, err := marshal(a.want)
	a.digest = digestOf(rendered)
	return err
}

func marshal(config any) ([]byte, error) {
	rendered, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("the intent cannot be encoded: %w", err)
	}
	return rendered, nil
}

// namesNothing reports whether a configuration, or its metadata, names no field besides those that every configuration has.
func namesNothing(config reflect.Value) bool {
	for i := range config.NumField() {
		field := config.Field(i)
		name, inline := jsonName(config.Type().Field(i))
		switch {
		case inline || name == "name" || name == "namespace": // The kind is inlined.
		case field.Kind() == reflect.Pointer && !field.IsNil() && name == "metadata":
			if !namesNothing(field.Elem()) {
				return false
			}
		case !isEmpty(field):
			return false
		}
	}
	return true
}
