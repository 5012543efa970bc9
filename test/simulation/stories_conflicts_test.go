// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
)

// checkConflicts lets a new operator come to rest, and holds the disagreements that it tells of against managedFields: who
// is named holds the field, and an image that is not the one of the spec is told of, with its owner.
func (s *story) checkConflicts(o *Operator) {
	s.t.Helper()
	s.Settle()
	told := map[string]bool{}
	for _, conflict := range o.Conflicts() {
		ref := conflict.Object
		k := s.Server.KindOf(ref.Kind.Group, ref.Kind.Kind)
		live, ok := s.Server.Get(k, ref.Namespace, ref.Name)
		if !ok {
			s.t.Errorf("a conflict is told of %s, which does not exist", ref)
			continue
		}
		for _, field := range conflict.Fields {
			told[ref.Kind.Kind+"/"+ref.Name+field.Path] = true
			if len(field.Owners) == 0 {
				s.t.Errorf("nobody is named for %s of %s", field.Path, ref)
			}
			for _, owner := range field.Owners {
				if !holds(s.t, live, owner.Manager, field.Path) {
					s.t.Errorf("%s is named for %s of %s, and does not hold it", owner.Manager, field.Path, ref)
				}
			}
		}
	}
	for _, name := range []string{"web", "api"} {
		server, ok := s.Server.Get(s.Server.KindOf(toolhive, "MCPServer"), s.Namespace, name)
		if !ok || isStalled(server) {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(server)
		if err != nil {
			s.t.Fatal(err)
		}
		images := map[string]any{"mcp": content["spec"].(fields)["image"], render.ProxyContainer: render.DefaultRunnerImage}
		for _, kind := range []string{"StatefulSet", "Deployment"} {
			workload, has := s.Server.Get(s.Server.KindOf("apps", kind), s.Namespace, name)
			if !has {
				continue
			}
			for _, container := range templateOf(workload).Spec.Containers {
				path := fmt.Sprintf(`.spec.template.spec.containers[name=%q].image`, container.Name)
				if want, ours := images[container.Name]; ours && container.Image != want && !told[kind+"/"+name+path] {
					s.t.Errorf("%s %s has image %s instead of %s, and that is not told: %v", kind, name, container.Image, want, told)
				}
			}
		}
	}
}

// isStalled reports whether an MCPServer says that it cannot get on, as with a reference that holds its proxy: a backend whose port or
// transport has to change with the proxy's waits along, and so does what others hold of it.
func isStalled(obj runtime.Object) bool {
	var server v1beta1.MCPServer
	return json.Unmarshal([]byte(text(obj)), &server) == nil && meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionStalled)
}

// holds reports whether a field manager has a field, by the object's managedFields.
func holds(t *testing.T, obj runtime.Object, manager, path string) (is bool) {
	t.Helper()
	for _, entry := range access(obj).GetManagedFields() {
		fields, err := ownership.Fields(&entry)
		if err != nil {
			t.Fatal(err)
		}
		if entry.Manager == manager {
			fields.Iterate(func(p fieldpath.Path) { is = is || p.String() == path })
		}
	}
	return is
}
