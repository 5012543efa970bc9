// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/pkg/inventory"
)

// runConfigOf returns the RunConfig of what Aside renders, and whether a name of it is new.
func runConfigOf(t *testing.T, inTemplate []string, existing ...Existing) (config Existing, isNew bool) {
	t.Helper()
	result, isNew, err := Aside(Input{Server: newServer()}, Options{}, inTemplate, existing)
	if err != nil {
		t.Fatal(err)
	}
	for _, intent := range result.Intents {
		if intent.Child == inventory.RunConfig {
			return Existing{Name: intent.Name, Usable: true, Salt: intent.Config.(*corev1ac.ConfigMapApplyConfiguration).Data[SaltKey]}, isNew
		}
	}
	t.Fatal("there is no RunConfig")
	return config, isNew
}

func taken(name string, uid int) Existing {
	return Existing{Name: name, UID: types.UID(fmt.Sprint("uid-", uid))}
}

// A client that takes each name that a document gets makes it no harder to find the next one, however long it goes on.
func TestADocumentGetsANameThatNobodyHasTaken(t *testing.T) {
	own, isNew := runConfigOf(t, nil)
	if isNew || own.Salt != "" || !strings.HasPrefix(own.Name, "fetch-runconfig-") {
		t.Fatalf("it is %+v, new: %v", own, isNew)
	}
	existing, seen := []Existing{taken(own.Name, 0)}, map[string]bool{own.Name: true}
	for n := range 50 {
		aside, isNew := runConfigOf(t, []string{own.Name}, existing...)
		if !isNew || seen[aside.Name] {
			t.Fatalf("after %d names it is %+v, new: %v", len(existing), aside, isNew)
		}
		seen[aside.Name] = true
		existing = append(existing, taken(aside.Name, n+1))
	}
}

func TestTheNameOfADocumentStays(t *testing.T) {
	own, _ := runConfigOf(t, nil)
	first, later, other := taken(own.Name, 1), taken("fetch-runconfig-0123456789abcdef", 2), taken("fetch-er-runconfig-0123456789abcdef", 3)
	aside, _ := runConfigOf(t, nil, first)
	stale := Existing{Name: "fetch-runconfig-00000000000000aa", Usable: true, Salt: "s"}
	for name, test := range map[string]struct {
		inTemplate []string
		existing   []Existing
		want       string
		isNew      bool
	}{
		"nothing exists":                                    {nil, nil, own.Name, false},
		"its own":                                           {[]string{own.Name}, []Existing{own}, own.Name, false},
		"another name is taken":                             {nil, []Existing{later}, own.Name, false},
		"its own is taken":                                  {[]string{own.Name}, []Existing{first}, aside.Name, true},
		"one of another MCPServer is taken too":             {[]string{own.Name}, []Existing{first, other}, aside.Name, true},
		"an object of ToolHive's is there":                  {[]string{own.Name}, []Existing{first, taken("fetch-runconfig", 4)}, aside.Name, true},
		"the other name is written":                         {[]string{own.Name}, []Existing{first, aside}, aside.Name, false},
		"the other name is written, and more are taken":     {[]string{own.Name}, []Existing{first, later, aside}, aside.Name, false},
		"the template has the other name":                   {[]string{aside.Name}, []Existing{first, later, aside}, aside.Name, false},
		"the template has it, and its own is free":          {[]string{aside.Name}, []Existing{aside}, aside.Name, false},
		"it was written, and its own is free":               {[]string{stale.Name}, []Existing{aside}, own.Name, false},
		"the template has another document":                 {[]string{stale.Name}, []Existing{stale}, own.Name, false},
		"another document has a salt, and its own is taken": {[]string{stale.Name}, []Existing{stale, first}, aside.Name, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, isNew := runConfigOf(t, test.inTemplate, test.existing...); got.Name != test.want || isNew != test.isNew {
				t.Errorf("it is %s, new: %v; want %s, new: %v", got.Name, isNew, test.want, test.isNew)
			}
		})
	}
}
