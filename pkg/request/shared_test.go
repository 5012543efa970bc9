// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/workload"
)

// TestPullSecretsAreLeftToTheirOwner: a list that another controller owns is left to it as long as nothing is missing.
func TestPullSecretsAreLeftToTheirOwner(t *testing.T) {
	const writer, list = "freehold-access", `{"f:imagePullSecrets":{}}`
	apply, update := metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	ours, theirs := entry(writer, apply, `{"f:metadata":{"f:ownerReferences":{}}}`), entry("openshift", update, list)
	for name, c := range map[string]struct {
		wanted, present []string
		entries         []metav1.ManagedFieldsEntry
		stamped         bool
		left            bool
	}{
		"theirs has ours":                   {[]string{"reg"}, []string{"reg", "dockercfg"}, []metav1.ManagedFieldsEntry{ours, theirs}, true, true},
		"in another order":                  {[]string{"a", "b"}, []string{"dockercfg", "b", "a"}, []metav1.ManagedFieldsEntry{theirs, ours}, true, true},
		"theirs by apply":                   {[]string{"reg"}, []string{"reg"}, []metav1.ManagedFieldsEntry{ours, entry("openshift", apply, list)}, true, true},
		"a name is missing":                 {[]string{"reg", "more"}, []string{"reg", "dockercfg"}, []metav1.ManagedFieldsEntry{ours, theirs}, true, false},
		"theirs is empty":                   {[]string{"reg"}, nil, []metav1.ManagedFieldsEntry{ours, theirs}, true, false},
		"nothing wanted":                    {nil, []string{"dockercfg"}, []metav1.ManagedFieldsEntry{ours, theirs}, true, false},
		"ours":                              {[]string{"reg"}, []string{"reg"}, []metav1.ManagedFieldsEntry{entry(writer, apply, list)}, true, false},
		"ours and theirs":                   {[]string{"reg"}, []string{"reg"}, []metav1.ManagedFieldsEntry{entry(writer, apply, list), theirs}, true, false},
		"an update under our name":          {[]string{"reg"}, []string{"reg", "x"}, []metav1.ManagedFieldsEntry{ours, entry(writer, update, list)}, true, true},
		"nobody's":                          {[]string{"reg"}, []string{"reg"}, []metav1.ManagedFieldsEntry{ours}, true, false},
		"ToolHive's":                        {[]string{"reg"}, []string{"reg"}, []metav1.ManagedFieldsEntry{ours, entry("thv-operator", update, list)}, true, false},
		"before a takeover":                 {[]string{"reg"}, []string{"reg", "dockercfg"}, []metav1.ManagedFieldsEntry{entry("thv-operator", update, `{"f:metadata":{}}`), theirs}, false, true},
		"our claim was lost, a copy has it": {[]string{"reg"}, []string{"reg"}, []metav1.ManagedFieldsEntry{entry("velero", update, list)}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.entries}}
			if c.stamped {
				account.Annotations = map[string]string{"freehold.dev/source": "u/1"}
			}
			for _, name := range c.present {
				account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
			}
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(account)
			if err != nil {
				t.Fatal(err)
			}
			want := corev1ac.ServiceAccount("a", "n")
			for _, name := range c.wanted {
				want.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(name))
			}
			for form, live := range map[string]metav1.Object{"read": workload.ServiceAccountOf(account), "unstructured": &unstructured.Unstructured{Object: object}} {
				leave := Shared(writer, live, want)
				if got := leave != nil && leave(fieldpath.MakePathOrDie("imagePullSecrets")); got != c.left {
					t.Errorf("%s: left to others: %v, want %v", form, got, c.left)
				}
				if leave != nil && leave(fieldpath.MakePathOrDie("metadata", "ownerReferences")) {
					t.Errorf("%s: more than the list is left to others", form)
				}
			}
		})
	}
	if Shared(writer, &workload.ServiceAccount{}, appsv1ac.Deployment("a", "n")) != nil || Shared(writer, nil, corev1ac.ServiceAccount("a", "n")) != nil {
		t.Error("something is left to others where there is nothing to leave")
	}
}
