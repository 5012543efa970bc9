// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import _ "embed"

//go:embed modules/kubernetes.mod
var kubernetesMod []byte

//go:embed modules/kubernetes.sum
var kubernetesSum []byte

//go:embed modules/kubernetes-v1.34.4.mod
var kubernetes1344Mod []byte

//go:embed modules/kubernetes-v1.34.4.sum
var kubernetes1344Sum []byte

//go:embed modules/earlier.mod
var earlierMod []byte

//go:embed modules/earlier.sum
var earlierSum []byte

var (
	kubernetesModule = buildModule{name: "kubernetes", mod: kubernetesMod, sum: kubernetesSum}
	earlierModule    = buildModule{name: "earlier", mod: earlierMod, sum: earlierSum}
)

// KubernetesEnv names the release of Kubernetes that the API server, its controllers and the scheduler are of, such as v1.34.4,
// for suites that are run with several of them. etcd, kubectl and what nodes are made of stay the usual ones.
const KubernetesEnv = "FREEHOLD_KUBERNETES"

var kubernetesReleases = releases{env: KubernetesEnv, versionOf: "k8s.io/kubernetes", modules: []buildModule{
	kubernetesModule,
	{name: "kubernetes-v1.34.4", mod: kubernetes1344Mod, sum: kubernetes1344Sum},
}}

// KubernetesReleases returns the values of KubernetesEnv, the default first.
func KubernetesReleases() []string { return kubernetesReleases.versions() }

// kubernetesStamp are the packages in which Kubernetes programs expect their version from the linker. A program without it reports
// v0.0.0, which clients take for a server too old to talk to.
var kubernetesStamp = []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"}

func kubernetesRecipe(module buildModule, tool Tool) recipe {
	return recipe{
		module:    module,
		pkg:       "k8s.io/kubernetes/cmd/" + string(tool),
		versionOf: kubernetesReleases.versionOf,
		stamp:     kubernetesStamp,
	}
}
