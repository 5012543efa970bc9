// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filler makes values for property tests.
package filler

import (
	"math/rand/v2"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// depth is how many structs within each other are filled.
const depth = 9

// Fill sets about half of what there is to set in the value that a pointer to an apply configuration points to, every other value to zero.
func Fill(random *rand.Rand, config any) { filler{random}.fill(reflect.ValueOf(config).Elem(), depth) }

type filler struct{ *rand.Rand }

func (f filler) fill(v reflect.Value, depth int) {
	switch value := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*value = *resource.NewQuantity(f.Int64N(2), resource.DecimalSI)
		_ = value.String() // caches its text, as a decoded one has it
		return
	case *intstr.IntOrString:
		*value = []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(80), intstr.FromString("http")}[f.IntN(3)]
		return
	case *metav1.Time:
		*value = metav1.NewTime(time.Unix(f.Int64N(2)*1e9, 0).UTC())
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if depth > 0 && f.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			f.fill(field, depth-1)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Pointer || depth <= 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), f.IntN(3), 2))
		for i := range v.Len() {
			f.fill(v.Index(i), depth)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.IntN(3) {
			key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString([]string{"a", "b"}[f.IntN(2)])
			f.fill(element, depth)
			v.SetMapIndex(key, element)
		}
	case reflect.String:
		v.SetString([]string{"", "x"}[f.IntN(2)])
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt(f.Int64N(2))
	case reflect.Uint8:
		v.SetUint(f.Uint64N(2))
	}
}
