// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// podKind is the kind of the objects that are deleted for an immediate restart.
var podKind = schema.GroupKind{Kind: "Pod"}

func podRef(pod *workload.Pod) apply.ObjectRef {
	return apply.NewObjectRef(podKind, pod.Namespace, pod.Name)
}

// immediateRestart returns the proxy's pods for which the author of the MCPServer does not want to wait, or how long it is
// until they go.
//
// The Deployment has the request on its pod template, so its rollout is the restart, and the same annotation on a pod
// shows whether it is one of the new ones. Of the others, those older than the request are deleted. The ReplicaSet may
// replace them before the rollout takes its pods away; its new pods are younger, and are left to the rollout.
func immediateRestart(v *view) (doomed []*workload.Pod, wait time.Duration) {
	at, written, asked := render.ImmediateRestart(v.server)
	if !asked {
		return nil, 0
	}
	if wait = at.Sub(v.now); wait > 0 {
		return nil, wait // The clock of the user's machine is ahead of ours.
	}
	deployment := v.deployment()
	if deployment == nil || deployment.Template.RestartedAt != written {
		return nil, 0 // It does not have the request yet, or another field manager owns it.
	}
	for _, pod := range v.proxyPods() {
		if supersededBy(pod, written) && pod.CreationTimestamp.Time.Before(at) {
			doomed = append(doomed, pod)
		}
	}
	return doomed, 0
}

func supersededBy(pod *workload.Pod, request string) bool {
	return pod.RestartedAt != request
}
