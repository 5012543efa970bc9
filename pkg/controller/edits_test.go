// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

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
