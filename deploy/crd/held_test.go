// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/deploy/crd"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Who stands in the way of our definition of MCPServers. That the API server decides the same is for test/documents.
func TestWhoStandsInTheWayOfOurDefinitionIsFound(t *testing.T) {
	const (
		generator = ".metadata.annotations.controller-gen.kubebuilder.io/version"
		all       = `{"f:metadata":{"f:annotations":{".":{},"f:controller-gen.kubebuilder.io/version":{},"f:theirs":{}}},` +
			`"f:spec":{"f:group":{},"f:names":{"f:kind":{},"f:categories":{}},"f:versions":{}}}`
		update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	)
	differing := []string{generator, ".spec.versions"}
	by := func(manager string, operation metav1.ManagedFieldsOperationType, fields ...string) []crd.Holding {
		return []crd.Holding{{Owner: ownership.Owner{Manager: manager, Operation: operation}, Fields: fields}}
	}
	for name, c := range map[string]struct {
		manager     string
		operation   metav1.ManagedFieldsOperationType
		subresource string
		fields      string
		same        bool
		annotations map[string]string
		applier     string
		want        []crd.Holding
	}{
		"Helm 3":                       {manager: "helm", operation: update, want: by("helm", update, differing...)},
		"Helm 4":                       {manager: "helm", operation: apply, want: by("helm", apply, differing...)},
		"the same values":              {manager: "helm", operation: update, same: true},
		"no field of ours":             {manager: "helm", operation: update, fields: `{"f:metadata":{"f:annotations":{".":{},"f:theirs":{}}}}`},
		"a status":                     {manager: "kube-apiserver", operation: update, subresource: "status"},
		"whoever applies it":           {manager: crd.Kubectl, operation: apply},
		"an update of the same name":   {manager: crd.Kubectl, operation: update, want: by(crd.Kubectl, update, differing...)},
		"kubectl, beside another":      {manager: crd.Kubectl, operation: apply, applier: "argocd", want: by(crd.Kubectl, apply, differing...)},
		"what kubectl makes its own":   {manager: "kubectl-client-side-apply", operation: update, annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
		"what kubectl does not":        {manager: "kubectl-client-side-apply", operation: update, want: by("kubectl-client-side-apply", update, differing...)},
		"somebody's, not kubectl's":    {manager: "kubectl-edit", operation: update, annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}, want: by("kubectl-edit", update, differing...)},
		"only the generator's version": {manager: "helm", operation: update, fields: `{"f:metadata":{"f:annotations":{"f:controller-gen.kubebuilder.io/version":{}}}}`, want: by("helm", update, generator)},
	} {
		t.Run(name, func(t *testing.T) {
			own, live := definitionOfMCPServers(t), definitionOfMCPServers(t)
			annotations := maps.Clone(c.annotations)
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations["controller-gen.kubebuilder.io/version"] = own.GetAnnotations()["controller-gen.kubebuilder.io/version"]
			annotations["theirs"] = "yes"
			if !c.same {
				annotations["controller-gen.kubebuilder.io/version"] = "v0.17.3"
				version := live.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
				delete(version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)["spec"].(map[string]any)["properties"].(map[string]any), "proxyReadTimeout")
			}
			live.SetAnnotations(annotations)
			if c.fields == "" {
				c.fields = all
			}
			live.SetManagedFields([]metav1.ManagedFieldsEntry{{
				Manager: c.manager, Operation: c.operation, Subresource: c.subresource, APIVersion: "apiextensions.k8s.io/v1",
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(c.fields),
			}})
			if c.applier == "" {
				c.applier = crd.Kubectl
			}
			got, err := crd.Held(live, own, c.applier)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("holdings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnreadableManagedFieldsOfADefinitionAreAnError(t *testing.T) {
	live := definitionOfMCPServers(t)
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"unreadable":{}}`)}})
	if held, err := crd.Held(live, definitionOfMCPServers(t), crd.Kubectl); err == nil {
		t.Errorf("without an error it is held by %v", held)
	}
}

func TestAReleaseOfHelmNeedsItsLabelAndItsAnnotations(t *testing.T) {
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		want                string
	}{
		"nobody's": {},
		"Helm's": {
			map[string]string{"app.kubernetes.io/managed-by": "Helm"},
			map[string]string{"meta.helm.sh/release-name": "crds", "meta.helm.sh/release-namespace": "toolhive-system"},
			"toolhive-system/crds",
		},
		"by the label alone":      {map[string]string{"app.kubernetes.io/managed-by": "Helm"}, nil, ""},
		"by the annotation alone": {nil, map[string]string{"meta.helm.sh/release-name": "crds"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := crd.Release(&metav1.ObjectMeta{Labels: c.labels, Annotations: c.annotations}); got != c.want {
				t.Errorf("release is %q, want %q", got, c.want)
			}
		})
	}
}

func definitionOfMCPServers(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	read := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(crd.MCPServers), &read.Object); err != nil {
		t.Fatal(err)
	}
	return read
}
