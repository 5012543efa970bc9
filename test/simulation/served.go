// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// unserved names what an MCPServer's phase says otherwise than its conditions, and what is missing where Ready is True: its own workloads, with
// pods of the present templates that are ready, and behind the URL a Service of its own that selects them.
func (o *oracle) unserved() (violations []string) {
	for _, obj := range o.s.Server.List(o.s.Server.KindOf(toolhive, managers.MCPServer.Kind)) {
		var server v1beta1.MCPServer
		if err := json.Unmarshal([]byte(text(obj)), &server); err != nil {
			o.s.t.Fatal(err)
		}
		if server.DeletionTimestamp != nil {
			continue
		}
		for phase, condition := range map[v1beta1.MCPServerPhase]string{
			v1beta1.PhaseReady: v1beta1.ConditionReady, v1beta1.PhasePending: v1beta1.ConditionReconciling, v1beta1.PhaseFailed: v1beta1.ConditionStalled,
		} {
			is := meta.IsStatusConditionTrue(server.Status.Conditions, condition)
			if isHeldByFreehold(&server, "phase") && isHeldByFreehold(&server, fmt.Sprintf("k:{%q:%q}", "type", condition)) && is != (server.Status.Phase == phase) {
				violations = append(violations, fmt.Sprintf("step %d: %s has the phase %s, and its condition %s is True: %t", o.s.Steps, server.Name, server.Status.Phase, condition, is))
			}
		}
		if !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionReady) {
			continue
		}
		for _, missing := range o.missing(&server) {
			violations = append(violations, fmt.Sprintf("step %d: %s says that it is ready, and %s", o.s.Steps, server.Name, missing))
		}
	}
	return violations
}

// missing returns what an MCPServer lacks to be ready.
func (o *oracle) missing(server *v1beta1.MCPServer) (all []string) {
	deployment, proxyIsOwn := o.ownedBy(server, "apps", "Deployment", server.Name).(*appsv1.Deployment)
	set, backendIsOwn := o.ownedBy(server, "apps", "StatefulSet", server.Name).(*appsv1.StatefulSet)
	if !proxyIsOwn || !backendIsOwn {
		return []string{"not both of its workloads are there and its own"}
	}
	if now := deployment.Status; now.ObservedGeneration < deployment.Generation || now.ReadyReplicas < 1 || now.UpdatedReplicas < now.Replicas {
		all = append(all, fmt.Sprintf("its Deployment has generation %d and is %s", deployment.Generation, text(now)))
	}
	if now := set.Status; now.ObservedGeneration < set.Generation || now.ReadyReplicas < 1 ||
		now.UpdatedReplicas < now.Replicas && set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		all = append(all, fmt.Sprintf("its StatefulSet has generation %d and is %s", set.Generation, text(now)))
	}
	if !isHeldByFreehold(server, "url") {
		return all // Another client has written another URL.
	}
	address, err := url.Parse(server.Status.URL)
	if err != nil {
		return append(all, fmt.Sprintf("its URL is %q", server.Status.URL))
	}
	name, _, _ := strings.Cut(address.Hostname(), ".")
	service, serviceIsOwn := o.ownedBy(server, "", "Service", name).(*corev1.Service)
	if !serviceIsOwn || len(service.Spec.Selector) == 0 || service.Spec.Type == corev1.ServiceTypeExternalName ||
		!labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(deployment.Spec.Template.Labels)) {
		all = append(all, fmt.Sprintf("the Service of its URL %s is not its own, or selects others than its proxy", server.Status.URL))
	}
	return all
}

// ownedBy returns an object that stays, and whose controller the MCPServer is; nil for none.
func (o *oracle) ownedBy(server *v1beta1.MCPServer, group, kind, name string) runtime.Object {
	obj, ok := o.s.Server.Get(o.s.Server.KindOf(group, kind), server.Namespace, name)
	if !ok || access(obj).GetDeletionTimestamp() != nil || !metav1.IsControlledBy(access(obj), server) {
		return nil
	}
	return obj
}

// isHeldByFreehold reports whether the writer of statuses owns a leaf of a status, or an item of one of its lists: k: and its key.
func isHeldByFreehold(server *v1beta1.MCPServer, leaf string) bool {
	if !strings.HasPrefix(leaf, "k:") {
		leaf = "f:" + leaf
	}
	for _, entry := range server.GetManagedFields() {
		if entry.Manager == managers.Status && strings.Contains(entry.FieldsV1.GetRawString(), fmt.Sprintf("%q", leaf)) {
			return true
		}
	}
	return false
}
