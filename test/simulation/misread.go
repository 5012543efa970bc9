// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
)

const (
	// restsWithSquatter is for how long a cluster is at rest before the statuses have to tell of a squatter's objects. The waits before a document
	// gets another name are as long, or longer.
	restsWithSquatter = 50 * time.Second
	// mostAsides is how often a process gives a document another name within rolloutsIn, for the same specs: at once, and after waits of one,
	// two, four and eight minutes.
	mostAsides = 4
)

// servers returns the MCPServers that stay.
func (o *oracle) servers() (all []*v1beta1.MCPServer) {
	for _, obj := range o.s.Server.List(o.s.Server.KindOf(toolhive, managers.MCPServer.Kind)) {
		server := &v1beta1.MCPServer{}
		if err := json.Unmarshal([]byte(text(obj)), server); err != nil {
			o.s.t.Fatal(err)
		}
		if server.DeletionTimestamp == nil {
			all = append(all, server)
		}
	}
	return all
}

// misread names the ConfigMaps that pods of a proxy may have read although somebody else has made them, and those that the next pod would
// read: while there is one, the MCPServer has failed, and says which. Without a squatter no proxy stays so, unless it cannot be written.
func (o *oracle) misread() (violations []string) {
	for _, server := range o.servers() {
		proxy, isOwn := o.ownedBy(server, "apps", "Deployment", server.Name).(*appsv1.Deployment)
		if !isOwn {
			continue
		}
		next := o.spoilt(server, &proxy.Spec.Template.Spec)
		all := slices.Clone(next)
		for _, obj := range o.s.Server.List(o.s.workloads.pods) {
			if pod := obj.(*corev1.Pod); pod.DeletionTimestamp == nil && o.isOf(pod, proxy) {
				all = append(all, o.spoilt(server, &pod.Spec)...)
			}
		}
		owned := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsOwned)
		isTold := server.Status.Phase == v1beta1.PhaseFailed &&
			(isUnusable(server) || owned != nil && owned.Status == metav1.ConditionFalse && owned.Reason == v1beta1.ReasonObjectNotOurs)
		if isHeldByFreehold(server, "phase") && len(all) > 0 && !isTold {
			violations = append(violations, fmt.Sprintf("step %d: pods of %s may have read %q, which are somebody else's, and the status says %s and %s",
				o.s.Steps, server.Name, all, server.Status.Phase, text(owned)))
		}
		if o.s.squatter == nil && len(next) > 0 && !o.isHeldBack(server) {
			violations = append(violations, fmt.Sprintf("step %d: the next pod of %s reads %q, which are somebody else's: %s",
				o.s.Steps, server.Name, next, text(server.Status.Conditions)))
		}
	}
	return violations
}

// isHeldBack reports whether the proxy of an MCPServer stays as it is for another cause than what it reads.
func (o *oracle) isHeldBack(server *v1beta1.MCPServer) bool {
	if isUnusable(server) {
		return true
	}
	written := append(slices.Clone(inventory.Proxy.DependsOn), inventory.Proxy)
	return slices.ContainsFunc(o.s.alive(), func(p *Operator) bool {
		return p.Controller != nil && slices.ContainsFunc(p.Conflicts(), func(conflict *apply.ConflictError) bool {
			return slices.ContainsFunc(written, func(child *inventory.Child) bool { return conflict.Object == child.Ref(server.Namespace, server.Name) })
		})
	})
}

// isUnusable reports whether an MCPServer is stalled since nothing can be rendered from it: the proxy stays as it is, and FieldsOwned too.
func isUnusable(server *v1beta1.MCPServer) bool {
	stalled := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionStalled)
	return stalled != nil && stalled.Status == metav1.ConditionTrue && stalled.Reason != v1beta1.ReasonObjectNotOurs && stalled.Reason != v1beta1.ReasonFieldManagerConflict
}

// spoilt returns the ConfigMaps which pods of a proxy read, which are named by their content, and which have another one.
func (o *oracle) spoilt(server *v1beta1.MCPServer, pods *corev1.PodSpec) (names []string) {
	for _, name := range ownConfigs(server.Namespace, server.Name, pods) {
		obj, ok := o.s.Server.Get(o.s.Server.KindOf("", "ConfigMap"), server.Namespace, name)
		if !ok {
			continue
		}
		config, child := obj.(*corev1.ConfigMap), inventory.Named(apply.NewObjectRef(managers.ConfigMap, server.Namespace, name), server.Name)
		if child.ContentName(server.Name, config.Data) != name || len(config.BinaryData) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// isOf reports whether a pod is one of a Deployment, through a ReplicaSet.
func (o *oracle) isOf(pod *corev1.Pod, proxy *appsv1.Deployment) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return false
	}
	set, ok := o.s.Server.Get(o.s.workloads.replicaSets, pod.Namespace, owner.Name)
	return ok && access(set).GetUID() == owner.UID && metav1.IsControlledBy(access(set), proxy)
}

// noteUntold takes note of the squatter's objects that no MCPServer reports, in a cluster at rest.
func (o *oracle) noteUntold() {
	q := o.s.squatter
	q.untold, q.specs = nil, o.specs
	told := map[string]bool{}
	for _, server := range o.servers() {
		told[server.Name] = meta.IsStatusConditionFalse(server.Status.Conditions, v1beta1.ConditionFieldsOwned) || isUnusable(server) || !isHeldByFreehold(server, `k:{"type":"FieldsOwned"}`)
	}
	for _, object := range o.s.inTheWay() {
		if kind := o.s.Server.KindOf(q.group, q.kind).GroupKind(); !slices.ContainsFunc(inventory.Servers(kind, object.GetName()), func(name string) bool { return told[name] }) {
			q.untold = append(q.untold, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()})
		}
	}
}

// untold names the objects that operators made once the squatter's had gone, which no MCPServer has reported to be in the way.
func (o *oracle) untold() (violations []string) {
	q := o.s.squatted
	if q == nil || q.leaves || o.specs != q.specs {
		return nil
	}
	for _, key := range q.untold {
		if _, made := o.s.Server.Get(o.s.Server.KindOf(q.group, q.kind), key.Namespace, key.Name); made {
			violations = append(violations, fmt.Sprintf("step %d: somebody else's %s %s was in the way, and no status said so", o.s.Steps, q.kind, key.Name))
		}
	}
	return violations
}

// checkAside finds a process that gives a document other names again and again, for the same specs. Each replaces the proxy.
func (o *oracle) checkAside(r *apiserver.Request, event watch.EventType, obj runtime.Object) {
	config, ok := obj.(*corev1.ConfigMap)
	if !ok || event != watch.Added || !isOurs(r) || config.Data[render.SaltKey] == "" || o.salted[config.Name] {
		return
	}
	o.salted[config.Name] = true
	document := config.Name[:strings.LastIndex(config.Name, "-")]
	if n := o.tempo.add(fmt.Sprint(r.Client, " names ", document, " for specs ", o.specs), rolloutsIn); n > mostAsides {
		o.violated(r, "%s got other names %d times within %s, for the same specs", document, n, rolloutsIn)
	}
}
