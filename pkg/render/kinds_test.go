// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// fieldsOf returns the fields of a type whose names in JSON end so.
func fieldsOf[T any](suffix string) (names []string) {
	for of, i := reflect.TypeFor[T](), 0; i < of.NumField(); i++ {
		if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); strings.HasSuffix(name, suffix) {
			names = append(names, name)
		}
	}
	return names
}

func TestEveryReferenceOfAnMCPServerHasARow(t *testing.T) {
	var rows []string
	for ref := range configs.References() {
		rows = append(rows, ref.Field)
	}
	fields := fieldsOf[v1beta1.MCPServerSpec]("Ref")
	slices.Sort(rows)
	slices.Sort(fields)
	if diff := cmp.Diff(fields, rows); diff != "" {
		t.Errorf("fields of the spec (-) and rows (+):\n%s", diff)
	}
}

func TestTheTablesOfKindsAgree(t *testing.T) {
	hashes, referred := map[string][]string{}, map[string]bool{}
	for ref := range configs.References() {
		if referred[ref.Kind.Name] = true; ref.WithHash == nil {
			continue
		}
		document, err := json.Marshal(ref.WithHash(toolhivev1beta1ac.MCPServerStatus(), "h"))
		var status v1beta1.MCPServerStatus
		if err != nil || json.Unmarshal(document, &status) != nil || *ref.Hash(&status) != "h" {
			t.Errorf("%s: the hash is read from another field than it is written to: %s", ref.Field, document)
		}
		hashes[ref.Kind.Name] = append(hashes[ref.Kind.Name], strings.TrimSuffix(strings.TrimPrefix(string(document), `{"`), `":"h"}`))
	}
	var all []string
	for _, config := range managers.Configs() {
		kind := configs.KindNamed(config.Kind)
		if kind == nil {
			t.Errorf("pkg/configs has no row of %s", config.Kind)
			continue
		}
		delete(referred, config.Kind)
		if diff := cmp.Diff(hashes[config.Kind], config.Hashes); diff != "" {
			t.Errorf("%s: hashes in pkg/configs (-) and in pkg/fieldmanager/managers (+):\n%s", config.Kind, diff)
		}
		all = append(all, config.Hashes...)
		document, err := json.Marshal(kind.WithFinalizers("tools", "a", config.Finalizer))
		want := `{"kind":"` + config.Kind + `","apiVersion":"` + config.GroupVersion().String() + `","metadata":{"name":"a","namespace":"tools","finalizers":["` + config.Finalizer + `"]}}`
		if string(document) != want || err != nil {
			t.Errorf("%s: the finalizer is written by %s %v", config.Kind, document, err)
		}
	}
	if len(referred) > 0 {
		t.Errorf("pkg/fieldmanager/managers has no row of %v", referred)
	}
	fields := fieldsOf[v1beta1.MCPServerStatus]("Hash")
	slices.Sort(all)
	slices.Sort(fields)
	if diff := cmp.Diff(fields, all); diff != "" {
		t.Errorf("hashes of the status (-) and of the rows (+):\n%s", diff)
	}
}
