// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"testing"
)

func TestForeignObjectsHaveTheirShares(t *testing.T) {
	made := map[uintptr]int{}
	for i := range 200 {
		made[reflect.ValueOf(foreignMaker(i)).Pointer()]++
	}
	total := 0
	for i, kind := range foreignKinds {
		total += kind.share
		if got := made[reflect.ValueOf(kind.make).Pointer()]; got != 2*kind.share {
			t.Errorf("of 200 objects %d are of kind %d, want %d", got, i, 2*kind.share)
		}
	}
	if total != 100 {
		t.Errorf("the shares add up to %d", total)
	}
}
