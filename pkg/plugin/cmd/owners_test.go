// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The values of a Secret are not shown, nor its annotations: tools keep whole copies of an object there.
func TestValuesOfASecretAreNotShown(t *testing.T) {
	object := func(kind, value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: content{
			"apiVersion": "v1", "kind": kind, "data": content{"password": value}, "type": "Opaque",
			"metadata": content{"name": "key", "labels": content{"app": "web"}, "annotations": content{
				"kubectl.kubernetes.io/last-applied-configuration": value, "banzaicloud.com/last-applied": value,
			}},
		}}
	}
	if diff := cmp.Diff(object("Secret", hidden), withoutSecrets(object("Secret", "hunter2"))); diff != "" {
		t.Errorf("of a Secret it shows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(object("ConfigMap", "hunter2"), withoutSecrets(object("ConfigMap", "hunter2"))); diff != "" {
		t.Errorf("of a ConfigMap it shows (-want +got):\n%s", diff)
	}
}
