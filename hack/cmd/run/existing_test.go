// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/freehold-dev/freehold/deploy"
	"github.com/freehold-dev/freehold/hack/operator"
)

func TestRefuseBesideFreehold(t *testing.T) {
	if err := refuseBesideFreehold(t.Context(), fake.NewClientset()); err != nil {
		t.Errorf("without Freehold: %v", err)
	}
	objects, err := operator.Decode([]byte(deploy.Install))
	if err != nil {
		t.Fatal(err)
	}
	installed := fake.NewClientset()
	for _, o := range objects {
		if o.GroupVersionKind() != (schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}) {
			continue
		}
		deployment := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, deployment); err != nil {
			t.Fatal(err)
		}
		if err := installed.Tracker().Add(deployment); err != nil {
			t.Fatal(err)
		}
	}
	if err := refuseBesideFreehold(t.Context(), installed); err == nil || !strings.Contains(err.Error(), "Deployment freehold-system/freehold") {
		t.Errorf("beside deploy/install.yaml: %v", err)
	}
}
