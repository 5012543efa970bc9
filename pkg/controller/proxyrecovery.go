// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
)

// proxyRecovery remembers which proxy pods failed while their backend was not ready.
//
// A runner exits when its backend is not ready, and the kubelet starts it again after waits of up to five minutes. Once
// the backend is back there is nothing to wait for: a pod that waits out its back-off is deleted, and the ReplicaSet
// makes one that starts at once. A pod that fails with its backend ready fails for a reason of its own and is left to
// the kubelet. What is remembered is lost with the process; then the kubelet's wait is what is left.
type proxyRecovery struct {
	mu sync.Mutex
	// failed has, for each MCPServer, the pods and what is known of them.
	failed map[cache.ObjectName]map[types.UID]failure
}

// failure of a proxy pod for want of a backend: how often the runner had been started again by then.
type failure int32

func newProxyRecovery() *proxyRecovery {
	return &proxyRecovery{failed: map[cache.ObjectName]map[types.UID]failure{}}
}

// note remembers those of the pods that fail.
func (o *proxyRecovery) note(key cache.ObjectName, pods []*corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, pod := range pods {
		if status.Failure(pod) == "" {
			continue
		}
		if o.failed[key] == nil {
			o.failed[key] = map[types.UID]failure{}
		}
		o.failed[key][pod.UID] = runnerRestarts(pod)
	}
}

// over reports whether some of the pods still are as they failed for want of a backend, and returns those of them that
// are to be deleted. One stays among these until it is being deleted: a deletion that was refused is repeated. Others are
// forgotten.
func (o *proxyRecovery) over(key cache.ObjectName, pods []*corev1.Pod) (recovering bool, doomed []*corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	still := map[types.UID]failure{}
	for _, pod := range pods {
		noted, ok := o.failed[key][pod.UID]
		if !ok || pod.DeletionTimestamp != nil || noted != runnerRestarts(pod) || status.Failure(pod) == "" {
			continue
		}
		if waitsForRestart(pod) {
			doomed = append(doomed, pod)
		}
		still[pod.UID] = noted
	}
	if len(still) == 0 {
		delete(o.failed, key)
		return false, nil
	}
	o.failed[key] = still
	return true, doomed
}

func (o *proxyRecovery) forget(key cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.failed, key)
}

// recover gives proxies a new start that failed for want of a backend which is back now. It tells whether some of them
// have not had one yet.
func (p *pass) recover(ctx context.Context) (recovering bool) {
	pods := p.proxyPods()
	if !p.backendServes() {
		p.proxyRecovery.note(p.key, pods)
		return false
	}
	recovering, doomed := p.proxyRecovery.over(p.key, pods)
	for _, pod := range doomed {
		p.delete(ctx, childRef(podKind, pod.Namespace, pod.Name), pod)
	}
	return recovering
}

// waitsForRestart tells whether the runner's container waits out a back-off.
func waitsForRestart(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == render.ProxyContainer && c.State.Waiting != nil && c.State.Waiting.Reason == v1beta1.ReasonCrashLoopBackOff
	})
}

func runnerRestarts(pod *corev1.Pod) failure {
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; c.Name == render.ProxyContainer {
			return failure(c.RestartCount)
		}
	}
	return 0
}
