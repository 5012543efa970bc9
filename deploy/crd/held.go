// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Kubectl is the field manager of kubectl apply --server-side, unless its user names another one.
const Kubectl = "kubectl"

// clientSide is the field manager of kubectl apply without --server-side. With it, kubectl makes that manager's claim its own
// before it applies, as long as the object has the annotation lastApplied.
const (
	clientSide  = "kubectl-client-side-apply"
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
)

// Labels and annotations that Helm gives to everything that a release contains.
const (
	managedBy        = "app.kubernetes.io/managed-by"
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// Holding is what a field manager owns of a CustomResourceDefinition in a cluster, and ours gives another value.
type Holding struct {
	// Owner is the field manager, and how it wrote.
	Owner ownership.Owner
	// Fields by their paths, sorted, such as .spec.versions.
	Fields []string
}

// Held returns why the API server would refuse our own CustomResourceDefinition, if a field manager applied it, without force, to one
// in the cluster: the others that own a field to which ours gives another value, in the order of managedFields. It needs no request.
func Held(live, own *unstructured.Unstructured, applier string) ([]Holding, error) {
	var held []Holding
	entries := live.GetManagedFields()
	for i := range entries {
		owner := ownership.OwnerOf(&entries[i])
		_, migrates := live.GetAnnotations()[lastApplied]
		if owner.Subresource != "" || owner.Applies(applier, "") || migrates && owner.Manager == clientSide {
			continue
		}
		set, err := ownership.Fields(&entries[i])
		if err != nil {
			return nil, fmt.Errorf("CustomResourceDefinition %s: %w", live.GetName(), err)
		}
		var fields []string
		set.Leaves().Iterate(func(path fieldpath.Path) {
			// Numbers of a YAML file are floats, those of the API server integers; to value they are equal.
			our, ok := at(own, path)
			their, _ := at(live, path)
			if ok && !value.Equals(value.NewValueInterface(our), value.NewValueInterface(their)) {
				fields = append(fields, path.String())
			}
		})
		if len(fields) > 0 {
			slices.Sort(fields)
			held = append(held, Holding{Owner: owner, Fields: fields})
		}
	}
	return held, nil
}

// Release returns the Helm release that a CustomResourceDefinition belongs to, as NAMESPACE/NAME; empty for none. Helm leaves its marks
// on what it keeps when a release is uninstalled, so the release may be gone.
func Release(live metav1.Object) string {
	annotations := live.GetAnnotations()
	if live.GetLabels()[managedBy] != "Helm" || annotations[releaseName] == "" {
		return ""
	}
	return annotations[releaseNamespace] + "/" + annotations[releaseName]
}

// at returns the value at a path of fields. Lists of a CustomResourceDefinition are owned as a whole, but for those of its status.
func at(object *unstructured.Unstructured, path fieldpath.Path) (content any, ok bool) {
	content = object.Object
	for _, element := range path {
		of, isObject := content.(map[string]any)
		if !isObject || element.FieldName == nil {
			return nil, false
		}
		if content, ok = of[*element.FieldName]; !ok {
			return nil, false
		}
	}
	return content, true
}
