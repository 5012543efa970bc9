// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/internal/history"
)

// state returns what a cluster holds, without conditions of the types in without. How many pods and ReplicaSets there have been
// is for the oracle to count.
func (s *Simulation) state(without ...string) history.State {
	var objects []*unstructured.Unstructured
	for _, k := range s.workloads.collected {
		for _, obj := range s.Server.List(k) {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
			if err != nil {
				s.t.Fatal(err)
			}
			objects = append(objects, &unstructured.Unstructured{Object: content})
		}
	}
	state, err := history.StateOf(objects, without...)
	if err != nil {
		s.t.Fatal(err)
	}
	return state
}

// differs shows how two states differ; empty if they do not.
func differs(a, b history.State) string { return cmp.Diff(texts(a), texts(b)) }

func texts(state history.State) map[string]string {
	all := map[string]string{}
	for name, object := range state {
		all[name] = string(object)
	}
	return all
}
