// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package vocabulary_test

import (
	"testing"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
)

func TestClassOf(t *testing.T) {
	for _, test := range []struct {
		manager, subresource string
		want                 vocabulary.ManagerClass
	}{
		// Humans, also where they scale.
		{"kubectl", "", vocabulary.ClassKubectl},
		{"kubectl", "scale", vocabulary.ClassKubectl},
		{"kubectl-edit", "", vocabulary.ClassKubectl},
		{"kubectl-client-side-apply", "", vocabulary.ClassKubectl},
		// The HorizontalPodAutoscaler's controller runs in the kube-controller-manager, whose name it bears; the
		// subresource tells the two apart.
		{"kube-controller-manager", "scale", vocabulary.ClassScaler},
		{"kube-controller-manager", "", vocabulary.ClassKubernetes},
		{"kube-controller-manager", "status", vocabulary.ClassKubernetes},
		{"keda", "scale", vocabulary.ClassScaler},
		{"keda-operator", "", vocabulary.ClassScaler},
		{"vpa-updater", "", vocabulary.ClassScaler},
		{"something-of-their-own", "scale", vocabulary.ClassScaler},
		{"argocd-controller", "", vocabulary.ClassGitOps},
		{"argocd-controller", "scale", vocabulary.ClassScaler},
		{"helm", "", vocabulary.ClassGitOps},
		{"kustomize-controller", "", vocabulary.ClassGitOps},
		{"flux-client-side-apply", "", vocabulary.ClassGitOps},
		{"toolhive-operator", "", vocabulary.ClassToolHive},
		{"thv-proxyrunner", "", vocabulary.ClassToolHive},
		{"before-first-apply", "", vocabulary.ClassKubernetes},
		{"ancient-changes", "", vocabulary.ClassKubernetes},
		{"kube-scheduler", "", vocabulary.ClassKubernetes},
		// Anybody else, also who has part of a known name.
		{"curl", "", vocabulary.ClassOther},
		{"my-kubectl", "", vocabulary.ClassOther},
		{"Helm", "", vocabulary.ClassOther},
		{"kube", "", vocabulary.ClassOther},
		{"", "", vocabulary.ClassUnknown},
		{"", "scale", vocabulary.ClassScaler},
	} {
		if got := vocabulary.ClassOf(test.manager, test.subresource); got != test.want {
			t.Errorf("ClassOf(%q, %q) = %s, want %s", test.manager, test.subresource, got, test.want)
		}
	}
	for _, w := range vocabulary.Registry().Writers() {
		if got := vocabulary.ClassOf(w.Name, w.Subresource); got != vocabulary.ClassFreehold {
			t.Errorf("our own %s has class %s", w.Name, got)
		}
	}
}
