// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/freehold-dev/freehold/pkg/controller/observed"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/shell"
	"github.com/freehold-dev/freehold/pkg/workload"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// inputOf returns what the children are rendered from. known is false when an object that the MCPServer refers to has not been read
// yet; the MCPServer is woken when it has.
func (c *Controller) inputOf(ctx context.Context, v *observed.Snapshot) (input render.Input, known bool) {
	input = render.Input{Server: v.Server, BackendProcess: v.BackendProcess()}
	if input.References, known = c.caches.References(v.Server); !known {
		return input, false
	}
	authz := authzReference(v.Server)
	c.configMaps.Use(ctx, v.Key, append(input.References.ConfigMaps(), authz)...)
	if input.AuthzConfigMap, known = c.configMaps.Get(v.Key.Namespace, authz); !known {
		return input, false
	}
	return input, input.References.AddBundles(func(name string) (*corev1.ConfigMap, bool) {
		return c.configMaps.Get(v.Key.Namespace, name)
	})
}

// enforced is writers.Enforced.
func enforced(v *observed.Snapshot) string {
	if deployment := v.Deployment(); deployment != nil {
		return writers.Enforced(deployment.Annotations, true)
	}
	return writers.Enforced(nil, false)
}

// hashReferences adds the referenced objects of an MCPServer to the hash of an input.
func hashReferences(h *maphash.Hash, in *render.References) {
	for _, state := range in.States() {
		maphash.WriteComparable(h, state)
	}
	for _, kind := range slices.Sorted(maps.Keys(in.Unavailable)) {
		maphash.WriteComparable(h, in.Unavailable[kind])
	}
}

// endpointMoves is render.EndpointMoves.
func endpointMoves(v *observed.Snapshot) bool {
	var proxy, backend *workload.Endpoint
	if deployment := v.Deployment(); deployment != nil {
		proxy = &deployment.Template.Endpoint
	}
	if set := v.StatefulSet(); set != nil {
		backend = &set.Template.Endpoint
	}
	return render.EndpointMoves(v.Server, proxy, backend)
}

// authzReference returns the ConfigMap that an MCPServer's authorization policy is in; empty for none.
func authzReference(server *v1beta1.MCPServer) string {
	if a := server.Spec.AuthzConfig; a != nil && a.ConfigMap != nil {
		return a.ConfigMap.Name
	}
	return ""
}

// wantedConfigs returns the ConfigMaps that are wanted.
func wantedConfigs(server cache.ObjectName, intents []render.Intent) (wanted []apply.ObjectRef) {
	for _, intent := range intents {
		if intent.Kind == managers.ConfigMap {
			wanted = append(wanted, apply.NewObjectRef(intent.Kind, server.Namespace, intent.Name))
		}
	}
	return wanted
}

// configUID returns the UID of a ConfigMap as this pass saw or left it; empty when there is none.
func configUID(v *observed.Snapshot, name string) types.UID {
	live := v.Object(apply.NewObjectRef(managers.ConfigMap, v.Key.Namespace, name))
	if live == nil {
		return ""
	}
	return live.GetUID()
}

// notWhatItsNameTells says why a ConfigMap that exists is not the one that is wanted, although it has its name and is
// the MCPServer's. What a pod has read of it cannot be undone by writing to it.
func notWhatItsNameTells(ref apply.ObjectRef) string {
	return "its data does not match the digest in its name, so another client wrote it, and Freehold does not use it. " +
		"To let Freehold create it again: " + shell.Command("kubectl", "delete", "configmap", "-n", ref.Namespace, ref.Name)
}

// unmet returns the first object that an intent depends on and that was not brought in line.
func unmet(intent render.Intent, namespace string, unwritten sets.Set[apply.ObjectRef]) (ref apply.ObjectRef, found bool) {
	for _, dependency := range intent.DependsOn {
		if ref = apply.NewObjectRef(dependency.Kind, namespace, dependency.Name); unwritten.Has(ref) {
			return ref, true
		}
	}
	return apply.ObjectRef{}, false
}
