// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"github.com/freehold-dev/freehold/pkg/controller/observed"

	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// immediateRestart returns the proxy's pods for which the author of the MCPServer does not want to wait, or how long it is
// until they go.
//
// The Deployment has the request on its pod template, so its rollout is the restart, and the same annotation on a pod
// shows whether it is one of the new ones. Of the others, those older than the request are deleted. The ReplicaSet may
// replace them before the rollout takes its pods away; its new pods are younger, and are left to the rollout.
func immediateRestart(v *observed.Snapshot) (doomed []*workload.Pod, wait time.Duration) {
	at, written, asked := render.ImmediateRestart(v.Server)
	if !asked {
		return nil, 0
	}
	if wait = at.Sub(v.Now); wait > 0 {
		return nil, wait // The clock of the user's machine is ahead of ours.
	}
	deployment := v.Deployment()
	if deployment == nil || deployment.Template.RestartedAt != written {
		return nil, 0 // It does not have the request yet, or another field manager owns it.
	}
	for _, pod := range v.ProxyPods() {
		if supersededBy(pod, written) && pod.CreationTimestamp.Time.Before(at) {
			doomed = append(doomed, pod)
		}
	}
	return doomed, 0
}

func supersededBy(pod *workload.Pod, request string) bool {
	return pod.RestartedAt != request
}
