// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

const (
	// releasedImage is the image that deploy/ gives the operator, whatever its tag.
	releasedImage = "ghcr.io/freehold-dev/freehold"
	// manifestsNamespace is the one that the operator of deploy/namespaced watches.
	manifestsNamespace = "mcp-servers"
)

// Users that deploy/ takes for the operators.
const (
	// DefaultUser is Freehold's operator.
	DefaultUser = "system:serviceaccount:freehold-system:freehold"
	// DefaultToolHiveUser is ToolHive's.
	DefaultToolHiveUser = "system:serviceaccount:toolhive-system:toolhive-operator"
)

// ManifestsOf returns the part of deploy/ that makes the operator's Deployment as it is, as arguments of kubectl apply; nil if it is set up
// otherwise. To apply a part of deploy/ to that would take its settings from it, such as its selector, its image or its memory.
func ManifestsOf(deployment *appsv1.Deployment) []string {
	if deployment.Namespace+"/"+deployment.Name != DefaultOperator {
		return nil
	}
	manifests, err := installed()
	if err != nil {
		return nil
	}
	want, pod := &manifests.Spec.Template.Spec, &deployment.Spec.Template.Spec
	if isAsIn(want, pod) {
		return []string{"-f", "deploy/install-without-crd.yaml"}
	}
	container := &want.Containers[0]
	container.Env = append(container.Env, corev1.EnvVar{Name: "WATCH_NAMESPACE", Value: manifestsNamespace})
	if isAsIn(want, pod) {
		return []string{"-k", "deploy/namespaced"}
	}
	return nil
}

// isAsIn reports whether a pod has everything that the manifest sets, and none of the settings that users add.
func isAsIn(manifest, pod *corev1.PodSpec) bool {
	if len(pod.Containers) != 1 || !isReleasedImage(pod.Containers[0].Image) {
		return false
	}
	manifest = manifest.DeepCopy()
	want, container := &manifest.Containers[0], &pod.Containers[0]
	added := len(pod.InitContainers) + len(pod.Volumes) + len(pod.Tolerations) + len(pod.NodeSelector) + len(pod.ImagePullSecrets) +
		len(pod.PriorityClassName) + len(container.Command) + len(container.EnvFrom) + len(container.VolumeMounts)
	if added > 0 || pod.Affinity != nil || len(container.Args) != len(want.Args) || len(container.Env) != len(want.Env) ||
		!equality.Semantic.DeepEqual(container.Resources, want.Resources) {
		return false
	}
	want.Image = container.Image
	// The API server has filled in numbers of these, and its defaults where the manifest says nothing, which the comparison passes over.
	want.LivenessProbe, want.ReadinessProbe, want.Ports = nil, nil, nil
	return equality.Semantic.DeepDerivative(manifest, pod)
}

// isReleasedImage reports whether an image is the one of deploy/, in any version.
func isReleasedImage(image string) bool {
	rest, found := strings.CutPrefix(image, releasedImage)
	return found && (rest == "" || rest[0] == ':' || rest[0] == '@')
}
