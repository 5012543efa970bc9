// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"

	"github.com/freehold-dev/freehold/pkg/controller/observed"

	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// failure of a proxy pod for want of a backend: how often the runner had been started again by then.
type failure int32

// recovery is what to do about proxies that failed for want of a backend.
type recovery struct {
	// failed are those that have not had a new start yet.
	failed map[types.UID]failure
	// doomed are those of them that are to be deleted, which gives them one.
	doomed []*workload.Pod
	// recovering reports that the backend is back, and they are not.
	recovering bool
}

// recoverProxies decides on a view, and on which pods of the proxy failed before while their backend was not ready.
//
// A runner exits when its backend is not ready, and the kubelet starts it again after waits of up to five minutes. Once
// the backend is back there is nothing to wait for: a pod that waits out its back-off is deleted, and the ReplicaSet
// makes one that starts at once. A pod that fails with its backend ready has another problem and is left to the
// kubelet.
//
// While the backend does not serve it adds those
// that fail. Afterwards a pod stays among them, as long as it is as it failed, until it is being deleted: a deletion that was
// refused is repeated.
func recoverProxies(v *observed.Snapshot, before map[types.UID]failure) (r recovery) {
	serves := v.BackendServes()
	r.failed = map[types.UID]failure{}
	if !serves {
		maps.Copy(r.failed, before)
	}
	for _, pod := range v.ProxyPods() {
		noted, known := before[pod.UID]
		switch now := runnerRestarts(pod); {
		case status.Failure(pod) == "":
		case !serves:
			r.failed[pod.UID] = now
		case known && pod.DeletionTimestamp == nil && noted == now:
			r.failed[pod.UID], r.recovering = now, true
			if waitsForRestart(pod) {
				r.doomed = append(r.doomed, pod)
			}
		}
	}
	return r
}

// waitsForRestart reports whether the runner's container waits out a back-off.
func waitsForRestart(pod *workload.Pod) bool {
	return slices.ContainsFunc(pod.Statuses, func(c workload.ContainerStatus) bool {
		return c.Name == workload.ProxyContainer && c.Waiting != nil && c.Waiting.Reason == v1beta1.ReasonCrashLoopBackOff
	})
}

func runnerRestarts(pod *workload.Pod) failure {
	for i := range pod.Statuses {
		if c := &pod.Statuses[i]; c.Name == workload.ProxyContainer {
			return failure(c.RestartCount)
		}
	}
	return 0
}
