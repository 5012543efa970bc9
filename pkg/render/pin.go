// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// PinConfigs completes the intent for the proxy's Deployment, in place, by the UIDs of the ConfigMaps that it depends on.
// Rendering does not know them: they may be created in the same pass. uid returns that of a ConfigMap, and an empty one
// for a ConfigMap that does not exist; then nothing is pinned. Other intents stay as they are.
func PinConfigs(intent Intent, uid func(configMap string) types.UID) {
	var uids []string
	for _, dependency := range intent.DependsOn {
		if dependency.Kind != kindConfigMap {
			continue
		}
		found := uid(dependency.Name)
		if found == "" {
			return
		}
		uids = append(uids, string(found))
	}
	pin(intent, strings.Join(uids, " "))
}

// KeepPins completes the intent for the proxy's Deployment by the UIDs that are among the annotations of its pod template as it is. It is
// for those who cannot know the present ones.
func KeepPins(intent Intent, annotations map[string]string) {
	pin(intent, annotations[v1beta1.AnnotationConfigUIDs])
}

func pin(intent Intent, uids string) {
	deployment, ok := intent.Config.(*appsv1ac.DeploymentApplyConfiguration)
	if !ok || deployment.Spec == nil || deployment.Spec.Template == nil || uids == "" {
		return
	}
	deployment.Spec.Template.WithAnnotations(map[string]string{v1beta1.AnnotationConfigUIDs: uids})
}
