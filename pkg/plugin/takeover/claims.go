// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/plugin/wanted"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// inherit returns a child as it is once ToolHive's claims have passed to the operator's writers. Replicas is the writer
// of the number of pods if it has one to write, or else empty: then the number stays and is nobody's.
func inherit(live *unstructured.Unstructured, ref apply.ObjectRef, replicas string) (*unstructured.Unstructured, error) {
	heirs := takeover.Heirs(managers.Registry().Writers(), ref, replicas)
	edit, err := ownership.Inherit(live, time.Time{}, takeover.FromToolHive, heirs...)
	return wanted.Edited(live, edit, err)
}

var gatePath = fieldpath.MakePathOrDie("spec", "template", "metadata", "annotations", v1beta1.AnnotationGeneration)

// gateOf is the gate of a StatefulSet, which may be nil.
func gateOf(set *unstructured.Unstructured) int64 {
	if set == nil {
		return 0
	}
	annotations, _, _ := unstructured.NestedStringMap(set.Object, "spec", "template", "metadata", "annotations")
	return takeover.Gate(annotations)
}

// Moments at which the operator writes an object of ToolHive's, in their order.
const (
	AtOnce           = "at once"
	AfterBackend     = "once the backend's new pods are ready"
	AfterProxies     = "once no proxy of ToolHive's is left"
	AfterRole        = "once the Role is written"
	WhenBackendReady = "once the backend is ready"
	WhenUnused       = "once no pod and no ReplicaSet uses it"
)

// Moments in their order.
var moments = []string{AtOnce, WhenBackendReady, AfterBackend, AfterProxies, AfterRole, WhenUnused}

func byMoment(a, b Object) int {
	return slices.Index(moments, a.When) - slices.Index(moments, b.When)
}

// moment tells when the operator takes an object over. Closed tells that the gate keeps the operator's proxyrunners from
// writing as it is.
func moment(ref apply.ObjectRef, server string, closed bool) string {
	switch ref.Kind {
	case managers.Deployment:
		if !closed {
			return AfterBackend
		}
	case managers.StatefulSet:
		if closed {
			return AfterProxies
		}
	case managers.ServiceKind:
		if closed && ref.Name != render.ProxyServiceName(server) {
			return AfterProxies
		}
	case managers.Role:
		return AfterProxies
	case managers.RoleBinding:
		return AfterRole
	}
	return AtOnce
}
