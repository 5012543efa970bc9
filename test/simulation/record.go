// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/internal/history"
)

// acted records what a user did, and lets the cluster come to rest after it; not unless histories are recorded.
func (s *Simulation) acted(act func() history.Act) {
	s.t.Helper()
	if s.history == nil {
		return
	}
	done := act()
	s.Settle()
	state := s.state()
	done.Changes, s.recorded = state.Since(s.recorded), state
	s.history.Acts = append(s.history.Acts, done)
}

// actOf is the request that a client sends.
func actOf(k *apiserver.Kind, verb, name, manager string, body any) history.Act {
	return history.Act{
		Verb: verb, Resource: k.GroupVersion().WithResource(k.Resource), Name: name, Manager: manager, Body: []byte(text(body)),
	}
}

// patchOf is the request with which kubectl edit makes an object another: a strategic merge patch, or a merge patch where the
// API server has no Go type.
func patchOf(t *testing.T, k *apiserver.Kind, manager string, before, after runtime.Object) history.Act {
	t.Helper()
	act := actOf(k, "patch", access(after).GetName(), manager, nil)
	var err error
	if _, custom := after.(*unstructured.Unstructured); custom {
		act.PatchType = types.MergePatchType
		act.Body, err = jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(text(before)), []byte(text(after)), []byte(text(before)))
	} else {
		act.PatchType = types.StrategicMergePatchType
		act.Body, err = strategicpatch.CreateTwoWayMergePatch([]byte(text(before)), []byte(text(after)), after)
	}
	if err != nil {
		t.Fatal(err)
	}
	return act
}
