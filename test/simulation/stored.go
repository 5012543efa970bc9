// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// author is one of Freehold's managers, as the author of an object.
type author struct {
	object  types.UID
	manager string
}

// wanted keeps what operators have applied last to their children, as the API server accepted it, and of which MCPServer the children are.
type wanted struct {
	bodies map[author]fields
	server map[types.UID]types.UID
}

// applied takes note of an apply that the API server has accepted.
func (o *oracle) applied(r *apiserver.Request, answer apiserver.Answer) {
	if r.Verb != "apply" || r.Kind == nil || !isChild(r.Kind) || isPlugin(r) || r.Subresource != "" || answer.Code >= http.StatusBadRequest {
		return
	}
	obj, ok := o.s.Server.Get(r.Kind, r.Namespace, r.Name)
	if !ok {
		return
	}
	var body fields
	if err := json.Unmarshal(r.Body, &body); err != nil {
		o.s.t.Fatal(err)
	}
	uid := access(obj).GetUID()
	o.wanted.bodies[author{uid, r.Manager}] = body
	for _, owner := range (&unstructured.Unstructured{Object: body}).GetOwnerReferences() {
		if owner.Kind == managers.MCPServer.Kind {
			o.wanted.server[uid] = owner.UID
		}
	}
}

// misreported names the fields of Freehold's that have other values than their managers applied last, while the status of the MCPServer
// says that all is applied.
func (o *oracle) misreported() (violations []string) {
	content := map[types.UID]string{}
	for _, obj := range o.s.Server.List(o.s.Server.KindOf(toolhive, managers.MCPServer.Kind)) {
		var server v1beta1.MCPServer
		if err := json.Unmarshal([]byte(text(obj)), &server); err != nil {
			o.s.t.Fatal(err)
		}
		if saysApplied(&server) {
			content[server.UID] = server.Name
		}
	}
	for _, k := range o.s.workloads.collected {
		if !isChild(k) {
			continue
		}
		for _, obj := range o.s.Server.List(k) {
			server := content[o.wanted.server[access(obj).GetUID()]]
			if server == "" || access(obj).GetDeletionTimestamp() != nil || k.Kind == "ConfigMap" && !o.isRead(server, obj) || o.s.isLost(k, obj) {
				continue
			}
			for _, difference := range o.unlike(obj) {
				violations = append(violations, fmt.Sprintf("step %d: the status of %s says that all is applied, and %s %s has %s",
					o.s.Steps, server, k.Kind, access(obj).GetName(), difference))
			}
		}
	}
	return violations
}

// isRead reports whether the proxy of an MCPServer reads a ConfigMap. One of an earlier revision stays as it is.
func (o *oracle) isRead(server string, config runtime.Object) bool {
	proxy, ok := o.s.Server.Get(o.s.Server.KindOf("apps", "Deployment"), access(config).GetNamespace(), server)
	return ok && slices.Contains(ownConfigs(access(config).GetNamespace(), server, &templateOf(proxy).Spec), access(config).GetName())
}

// isLost reports whether an object is a Service of a backend that its MCPServer asks for no more, and lacks the label that selects children.
// An operator that starts does not find it, and nothing but the end of the MCPServer deletes it.
func (s *Simulation) isLost(k *apiserver.Kind, obj runtime.Object) bool {
	owner := metav1.GetControllerOf(access(obj))
	if k.Kind != "Service" || owner == nil || access(obj).GetLabels()[v1beta1.LabelToolHive] != "" || access(obj).GetName() == inventory.ProxyService.Name(owner.Name) {
		return false
	}
	server, ok := s.Server.Get(s.Server.KindOf(toolhive, managers.MCPServer.Kind), s.Namespace, owner.Name)
	return ok && isStdio(server)
}

// saysApplied reports whether the status of an MCPServer says that everything is written, and as it was sent. One that is stalled says that
// its proxy waits, which stays as it is.
func saysApplied(server *v1beta1.MCPServer) bool {
	if meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionStalled) || server.DeletionTimestamp != nil || server.Status.ObservedGeneration != server.Generation {
		return false
	}
	applied := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionApplied)
	return applied != nil && applied.Status == metav1.ConditionTrue && applied.Reason == v1beta1.ReasonApplied &&
		applied.ObservedGeneration == server.Generation && meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionFieldsOwned)
}

// unlike describes the fields of an object that one of Freehold's managers owns and applied last with another value.
func (o *oracle) unlike(obj runtime.Object) (differences []string) {
	var live fields
	if err := json.Unmarshal([]byte(text(obj)), &live); err != nil {
		o.s.t.Fatal(err)
	}
	for _, entry := range access(obj).GetManagedFields() {
		body := o.wanted.bodies[author{access(obj).GetUID(), entry.Manager}]
		if body == nil || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" {
			continue
		}
		o.fieldsOf(&entry).Difference(ownership.Unowned()).Leaves().Iterate(func(path fieldpath.Path) {
			if sent, stored := ownership.ValueAt(body, path), ownership.ValueAt(live, path); !reflect.DeepEqual(sent, stored) {
				differences = append(differences, fmt.Sprintf("%s of %s as %.100s instead of %.100s", path, entry.Manager, text(stored), text(sent)))
			}
		})
	}
	slices.Sort(differences)
	return differences
}
