// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// sizes counts the entries of maps and lists that can be reached from a value, by the way to them through fields. What is in a cache of
// client-go is counted, too. Caches with a bound, and what is outside of the operator and its caches, are left out.
type sizes struct {
	of   map[string]int
	seen map[visit]bool
}

// visit is a value at an address. A struct and its first field have the same.
type visit struct {
	at unsafe.Pointer
	of reflect.Type
}

// sizesOf returns the sizes of all that a value holds.
func sizesOf(value any) map[string]int {
	s := sizes{map[string]int{}, map[visit]bool{}}
	s.walk(reflect.ValueOf(value), "")
	return s.of
}

// counted are the packages whose types are looked into.
var counted = []string{"github.com/freehold-dev/freehold/pkg/", "k8s.io/client-go/tools/cache", "k8s.io/client-go/util/workqueue", "sync"}

// isCounted reports whether what a type holds is counted.
func isCounted(of reflect.Type) bool {
	if strings.Contains(strings.ToLower(of.Name()), "lru") || strings.Contains(of.PkgPath(), "/lru") {
		return false
	}
	return of.PkgPath() == "" || slices.ContainsFunc(counted, func(prefix string) bool { return strings.HasPrefix(of.PkgPath(), prefix) })
}

func (s *sizes) walk(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if at := (visit{v.UnsafePointer(), v.Type()}); !v.IsNil() && !s.seen[at] {
			s.seen[at] = true
			s.walk(v.Elem(), path)
		}
	case reflect.Interface:
		if !v.IsNil() {
			s.walk(v.Elem(), path)
		}
	case reflect.Struct:
		s.walkStruct(v, path)
	case reflect.Slice, reflect.Array:
		s.of[path] += v.Len()
		for i := range v.Len() {
			s.walk(v.Index(i), path+"[]")
		}
	case reflect.Map:
		s.of[path] += v.Len()
		for entries := v.MapRange(); entries.Next(); {
			s.walk(entries.Value(), path+"{}")
		}
	}
}

func (s *sizes) walkStruct(v reflect.Value, path string) {
	of := v.Type()
	if !isCounted(of) {
		return
	}
	if v.CanAddr() {
		// Fields that are not exported are read here, which reflect allows for a value at an address.
		at := reflect.NewAt(of, v.Addr().UnsafePointer())
		switch held := at.Interface().(type) {
		case *sync.Map:
			held.Range(func(_, value any) bool {
				s.of[path]++
				s.walk(reflect.ValueOf(value), path+"{}")
				return true
			})
			return
		case interface{ Load() any }:
			s.walk(reflect.ValueOf(held.Load()), path)
			return
		}
		if load := at.MethodByName("Load"); load.IsValid() && strings.HasPrefix(of.Name(), "Pointer[") {
			s.walk(load.Call(nil)[0], path)
			return
		}
	}
	for i := range v.NumField() {
		s.walk(v.Field(i), path+"."+of.Field(i).Name)
	}
}

// larger describes what has more entries than before.
func larger(before, now map[string]int) (grown []string) {
	for path, n := range now {
		if n > before[path] {
			grown = append(grown, fmt.Sprintf("%s has %d entries, %d before", path, n, before[path]))
		}
	}
	return grown
}
