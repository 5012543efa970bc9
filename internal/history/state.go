// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

var (
	times      = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	containers = regexp.MustCompile(`containerd://\d+`)
	gone       = regexp.MustCompile(`\b(uid-\d{6}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b`)
	replicaSet = regexp.MustCompile(`ReplicaSet \\"[a-z0-9-]+\\"`) // in a message
	versions   = regexp.MustCompile(`@\d+`)
)

// State is what a cluster holds, in a form in which two histories of the same acts are equal: by kind and name, the JSON of
// every object, with who owns which of its fields in "owners", and without UIDs, versions and times.
type State map[string]json.RawMessage

// Since returns the changes from an earlier state: objects that are new or others, and null for those that are gone.
func (s State) Since(before State) State {
	changes := State{}
	for name, object := range s {
		if !bytes.Equal(object, before[name]) {
			changes[name] = object
		}
	}
	for name := range before {
		if s[name] == nil {
			changes[name] = json.RawMessage("null")
		}
	}
	return changes
}

// With returns the state that changes make of another.
func (s State) With(changes State) State {
	after := maps.Clone(s)
	for name, object := range changes {
		if string(object) == "null" {
			delete(after, name)
		} else {
			after[name] = object
		}
	}
	return after
}

// StateOf returns the state that objects make up. Pods, and their ReplicaSets, are left out, but the UIDs of those among the
// objects get the names of what they are of, as all others do.
//
// Conditions of the types in without are left out, too.
func StateOf(objects []*unstructured.Unstructured, without ...string) (State, error) {
	names := []string{}
	for _, obj := range objects {
		names = append(names, string(obj.GetUID()), "uid-of-"+obj.GetKind()+"-"+obj.GetName())
	}
	uids := strings.NewReplacer(names...)
	all := State{}
	for _, obj := range objects {
		if obj.GetKind() == "Pod" || obj.GetKind() == "ReplicaSet" {
			continue
		}
		content, err := neutral(obj.DeepCopy(), without)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		text := versions.ReplaceAllString(times.ReplaceAllString(uids.Replace(content), "T"), "@")
		text = replicaSet.ReplaceAllString(text, "ReplicaSet HASH") // The hash is of a template with UIDs.
		text = gone.ReplaceAllString(text, "uid-of-what-is-gone")
		all[obj.GetKind()+"/"+obj.GetName()] = json.RawMessage(containers.ReplaceAllString(text, "containerd"))
	}
	return all, nil
}

// neutral returns the JSON of an object and its owners. The object is modified.
func neutral(obj *unstructured.Unstructured, without []string) (string, error) {
	owners := map[string][]string{}
	for _, entry := range obj.GetManagedFields() {
		set, err := ownership.Fields(&entry)
		if err != nil {
			return "", err
		}
		owners[fmt.Sprint(entry.Manager, " ", entry.Operation, " ", entry.Subresource)] = strings.Split(set.String(), "\n")
	}
	content := obj.Object
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	if kind := obj.GetKind(); kind == "Deployment" || kind == "StatefulSet" {
		// Which changes came together in one write differs with the order of events.
		unstructured.RemoveNestedField(content, "metadata", "generation")
		unstructured.RemoveNestedField(content, "status", "observedGeneration")
		unstructured.RemoveNestedField(content, "metadata", "annotations", "deployment.kubernetes.io/revision")
	}
	if conditions, found, _ := unstructured.NestedSlice(content, "status", "conditions"); found {
		conditions = slices.DeleteFunc(conditions, func(c any) bool {
			return slices.Contains(without, fmt.Sprint(c.(map[string]any)["type"]))
		})
		// The controller of Deployments appends the one that it changes.
		slices.SortFunc(conditions, func(a, b any) int {
			return cmp.Compare(fmt.Sprint(a.(map[string]any)["type"]), fmt.Sprint(b.(map[string]any)["type"]))
		})
		if err := unstructured.SetNestedSlice(content, conditions, "status", "conditions"); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"object": content, "owners": owners})
	return string(text), err
}
