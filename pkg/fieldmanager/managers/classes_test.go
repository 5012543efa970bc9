// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package managers_test

import (
	"testing"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

func TestAClassFollowsFromTheNameAndTheSubresource(t *testing.T) {
	for _, test := range []struct {
		manager, subresource string
		want                 managers.ManagerClass
	}{
		// Humans, also where they scale.
		{"kubectl", "", managers.ClassKubectl},
		{"kubectl", "scale", managers.ClassKubectl},
		{"kubectl-edit", "", managers.ClassKubectl},
		{"kubectl-client-side-apply", "", managers.ClassKubectl},
		// The HorizontalPodAutoscaler's controller runs in the kube-controller-manager, whose name it bears; the
		// subresource tells the two apart.
		{"kube-controller-manager", "scale", managers.ClassScaler},
		{"kube-controller-manager", "", managers.ClassKubernetes},
		{"kube-controller-manager", "status", managers.ClassKubernetes},
		{"keda", "scale", managers.ClassScaler},
		{"keda-operator", "", managers.ClassScaler},
		{"vpa-updater", "", managers.ClassScaler},
		{"something-of-their-own", "scale", managers.ClassScaler},
		{"argocd-controller", "", managers.ClassGitOps},
		{"argocd-controller", "scale", managers.ClassScaler},
		{"helm", "", managers.ClassGitOps},
		{"kustomize-controller", "", managers.ClassGitOps},
		{"flux-client-side-apply", "", managers.ClassGitOps},
		{"toolhive-operator", "", managers.ClassToolHive},
		{"thv-proxyrunner", "", managers.ClassToolHive},
		{"before-first-apply", "", managers.ClassKubernetes},
		{"ancient-changes", "", managers.ClassKubernetes},
		{"kube-scheduler", "", managers.ClassKubernetes},
		// Anybody else, also who has part of a known name.
		{"curl", "", managers.ClassOther},
		{"my-kubectl", "", managers.ClassOther},
		{"Helm", "", managers.ClassOther},
		{"kube", "", managers.ClassOther},
		{"", "", managers.ClassUnknown},
		{"", "scale", managers.ClassScaler},
	} {
		if got := managers.ClassOf(test.manager, test.subresource); got != test.want {
			t.Errorf("ClassOf(%q, %q) = %s, want %s", test.manager, test.subresource, got, test.want)
		}
	}
	for _, w := range managers.Registry().Writers() {
		if got := managers.ClassOf(w.Name, w.Subresource); got != managers.ClassFreehold {
			t.Errorf("our own %s has class %s", w.Name, got)
		}
	}
}
