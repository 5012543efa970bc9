// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// PullSecrets is the path of a ServiceAccount's pull secrets.
const PullSecrets = ".imagePullSecrets"

// Shared returns a function that reports whether a writer leaves a field to other field managers without a request,
// because they own all that the writer wants; nil for none.
//
// This concerns one field. Kubernetes treats the pull secrets of a ServiceAccount as one value, and other controllers,
// such as OpenShift's, add their own to each ServiceAccount: two owners of that list always conflict. So the writer
// leaves the list to its owner while the owner's list has every name that the writer wants. If a name is missing the
// writer applies the list, which is a conflict like any other.
func Shared(writer string, live metav1.Object, want runtime.ApplyConfiguration) func(path fieldpath.Path) bool {
	wanted, ok := want.(*corev1ac.ServiceAccountApplyConfiguration)
	if !ok || live == nil || len(wanted.ImagePullSecrets) == 0 || lost(writer, live) {
		return nil
	}
	owners := ownership.Owners(live, PullSecrets)
	if len(owners) == 0 || slices.ContainsFunc(owners, func(o ownership.Owner) bool {
		// What ToolHive's managers own is inherited, or they are reported as managers that work on the MCPServer as well.
		return o.Applies(writer, "") || managers.IsToolHive(o.Manager)
	}) {
		return nil
	}
	present := pullSecrets(live)
	for _, secret := range wanted.ImagePullSecrets {
		if secret.Name != nil && !slices.Contains(present, *secret.Name) {
			return nil
		}
	}
	return func(path fieldpath.Path) bool { return path.String() == PullSecrets }
}

// lost reports whether a writer had a claim on an object and has none any more. It takes its claim back, and the fields
// that it named are part of that.
func lost(writer string, live metav1.Object) bool {
	_, written := live.GetAnnotations()[v1beta1.AnnotationSource]
	return written && ownership.ApplyEntry(live, writer, "") == nil
}

// pullSecrets returns the names in a ServiceAccount's list.
func pullSecrets(live metav1.Object) []string {
	switch account := live.(type) {
	case *workload.ServiceAccount:
		return account.ImagePullSecrets
	case *unstructured.Unstructured:
		var names []string
		list, _, _ := unstructured.NestedSlice(account.Object, "imagePullSecrets")
		for _, item := range list {
			if secret, ok := item.(map[string]any); ok {
				name, _, _ := unstructured.NestedString(secret, "name")
				names = append(names, name)
			}
		}
		return names
	}
	return nil
}
