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
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// inherit returns a child as it is once ToolHive's claims have passed to the operator's writers. Replicas is the writer
// of the number of pods if it has one to write, or else empty: then the number stays and is nobody's.
func inherit(live *unstructured.Unstructured, ref apply.ObjectRef, replicas string) (*unstructured.Unstructured, error) {
	heirs := takeover.Heirs(managers.Registry().Writers(), ref, replicas)
	edit, err := ownership.Inherit(live, time.Time{}, takeover.FromToolHive, heirs...)
	return desired.Edited(live, edit, err)
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

// Moments at which the operator writes an object beside those at which it takes one over.
const (
	WhenBackendReady takeover.Moment = "once the backend is ready"
	WhenUnused       takeover.Moment = "once no pod and no ReplicaSet uses it"
)

// moments in their order.
var moments = []takeover.Moment{
	takeover.AtOnce, WhenBackendReady, takeover.AfterBackend, takeover.AfterProxies, takeover.AfterRole, WhenUnused,
}

func byMoment(a, b Object) int {
	return slices.Index(moments, a.When) - slices.Index(moments, b.When)
}
