// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// checkConflicts lets new operators come to rest, and compares the conflicts that the one alive reports with managedFields: each reported
// manager owns the field, and the operator reports what checkTold looks for.
func (s *story) checkConflicts() {
	s.t.Helper()
	s.Settle()
	o := s.alive()[0] // An earlier one has been killed.
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
				if unknown := owner.IsUnknown(); unknown && len(ownership.Owners(access(live), field.Path)) > 0 {
					s.t.Errorf("no field manager is named for %s of %s, and one holds it", field.Path, ref)
				} else if !unknown && !holds(s.t, live, owner.Manager, field.Path) {
					s.t.Errorf("%s is named for %s of %s, and does not hold it", owner.Manager, field.Path, ref)
				}
			}
		}
	}
	for _, name := range names {
		s.checkTold(name, told)
	}
}

// checkTold looks for images and numbers of replicas of an MCPServer's workloads that differ from its spec without a reported conflict.
// These are the fields that stories contest.
func (s *story) checkTold(name string, told map[string]bool) {
	s.t.Helper()
	found, ok := s.Server.Get(s.Server.KindOf(toolhive, "MCPServer"), s.Namespace, name)
	if !ok {
		return
	}
	var server v1beta1.MCPServer
	if err := json.Unmarshal([]byte(text(found)), &server); err != nil {
		s.t.Fatal(err)
	}
	if isHeld(&server) {
		return
	}
	spec := server.Spec
	for _, workload := range []struct {
		kind, container, image string
		number                 *int32
	}{
		{"StatefulSet", "mcp", spec.Image, spec.BackendReplicas},
		{"Deployment", workload.ProxyContainer, render.DefaultRunnerImage, spec.Replicas},
	} {
		live, ok := s.Server.Get(s.Server.KindOf("apps", workload.kind), s.Namespace, name)
		if !ok || access(live).GetDeletionTimestamp() != nil || workload.kind == "Deployment" && waits(name, told) {
			continue
		}
		key := workload.kind + "/" + name
		for _, container := range templateOf(live).Spec.Containers {
			path := fmt.Sprintf(`.spec.template.spec.containers[name=%q].image`, container.Name)
			if container.Name == workload.container && container.Image != workload.image && !told[key+path] {
				s.t.Errorf("%s has image %s instead of %s, and that is not told: %v", key, container.Image, workload.image, told)
			}
		}
		const path = ".spec.replicas"
		number := *replicasOf(live)
		switch {
		case strings.Contains(server.Annotations[v1beta1.AnnotationYield], strings.ToLower(workload.kind)+"s/"+name+":"+path[1:]):
		case spec.Transport == v1beta1.TransportStdio && number > 1:
			s.t.Errorf("%s has %d pods, with transport stdio", key, number)
		case workload.number != nil && number != *workload.number && !told[key+path] &&
			(spec.Transport != v1beta1.TransportStdio || number != 1):
			s.t.Errorf("%s has %d pods instead of %d, and that is not told: %v", key, number, *workload.number, told)
		}
	}
}

// waits reports whether an object on which the Deployment of an MCPServer depends has a reported conflict.
func waits(name string, told map[string]bool) bool {
	for _, child := range inventory.Proxy.DependsOn {
		for key := range told {
			if strings.HasPrefix(key, child.Kind.Kind+"/"+child.Name(name)) {
				return true
			}
		}
	}
	return false
}

// isHeld reports whether an MCPServer is stalled by something else than a conflict, see isStalled.
func isHeld(server *v1beta1.MCPServer) bool {
	stalled := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionStalled)
	return stalled != nil && stalled.Status == metav1.ConditionTrue && stalled.Reason != v1beta1.ReasonFieldManagerConflict
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
