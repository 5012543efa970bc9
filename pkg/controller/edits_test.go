// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// edit is the reaction to a JSON patch: one of managedFields, under the guard of UID and version, and of nothing else.
func (s *apiServer) edit(patch clienttesting.PatchActionImpl) (bool, runtime.Object, error) {
	gvr := patch.Resource
	found, err := s.tracker.Get(gvr, patch.Namespace, patch.Name)
	if err != nil {
		return true, nil, err
	}
	gvks, _, err := s.scheme.ObjectKinds(found)
	if err != nil {
		return true, nil, err
	}
	w := write{
		verb: "edit", manager: patch.PatchOptions.FieldManager, kind: gvks[0].Kind, subresource: patch.Subresource,
		name: patch.Name, patch: patch.Patch,
	}
	s.mu.Lock()
	s.writes = append(s.writes, w)
	s.mu.Unlock()
	if err := s.before.ask(w); err != nil {
		return true, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, err = s.tracker.Get(gvr, patch.Namespace, patch.Name); err != nil {
		return true, nil, err
	}
	live, after := access(found), found.DeepCopyObject()
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(patch.Patch, &operations); err != nil {
		return true, nil, err
	}
	guards := map[string]string{
		"test /metadata/uid":                strconv.Quote(string(live.GetUID())),
		"replace /metadata/resourceVersion": strconv.Quote(live.GetResourceVersion()),
	}
	for _, o := range operations {
		name := o.Op + " " + o.Path
		if want, ok := guards[name]; ok {
			if string(o.Value) != want {
				return true, nil, apierrors.NewConflict(gvr.GroupResource(), patch.Name, fmt.Errorf("the object has been modified"))
			}
			delete(guards, name)
			continue
		}
		var entries []metav1.ManagedFieldsEntry
		if name != "add /metadata/managedFields" || json.Unmarshal(o.Value, &entries) != nil {
			s.t.Errorf("%s is no edit of managedFields: %s", w, patch.Patch)
		}
		if len(entries) == 1 && entries[0] == (metav1.ManagedFieldsEntry{}) {
			entries = nil
		}
		access(after).SetManagedFields(entries)
	}
	if len(guards) > 0 {
		s.t.Errorf("%s is not guarded: %s", w, patch.Patch)
	}
	stored, err := s.store(gvr, found, after, true)
	if err == nil {
		err = s.after.ask(w)
	}
	return true, stored, err
}

// ownersOf are the names of those who own a field of an object.
func ownersOf[L runtime.Object](s *apiServer, name, path string) []string {
	s.t.Helper()
	obj, ok := get[L](s, name)
	if !ok {
		s.t.Fatalf("%T %s does not exist", obj, name)
	}
	var names []string
	for _, o := range ownership.Owners(access(obj), path) {
		names = append(names, o.Manager)
	}
	return names
}

// annotate sets, or with an empty value removes, an annotation of an MCPServer, and lets the controller work.
func (o *operating) annotate(name, key, value string) {
	o.t.Helper()
	change(o.apiServer, name, func(server *v1beta1.MCPServer) {
		annotations := map[string]string{}
		maps.Copy(annotations, server.Annotations)
		annotations[key] = value
		if value == "" {
			delete(annotations, key)
		}
		server.Annotations = annotations
	})
	o.rest()
}
