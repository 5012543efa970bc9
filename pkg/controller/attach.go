// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"time"

	"github.com/freehold-dev/freehold/pkg/controller/observed"

	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// stranded returns the pods of a proxy with transport stdio whose runner is attached to a process that has ended, while the Deployment
// cannot name the process that has taken its place: the template is held back or refused as a whole, be it because of a reference that
// cannot be used. A runner does not recover by itself, see AnnotationAttachedTo. If such a pod is deleted, the one that follows has the same
// template and attaches to the present process.
func (p *pass) stranded() []*workload.Pod {
	deployment, process := p.Deployment(), p.BackendProcess()
	if deployment == nil || slices.ContainsFunc(p.refused, isMomentary) {
		return nil
	}
	to := deployment.Template.AttachedTo
	if to == "" || to == process || p.state.reattachedTo == process {
		return nil
	}
	began := processBegan(p.Snapshot)
	return slices.DeleteFunc(slices.Clone(p.ProxyPods()), func(pod *workload.Pod) bool {
		return pod.DeletionTimestamp != nil || !began.IsZero() && pod.CreationTimestamp.After(began)
	})
}

// reattachStranded has the stranded proxies replaced.
func reattachStranded(ctx context.Context, p *pass) {
	stranded := p.stranded()
	if len(stranded) == 0 {
		return
	}
	// Times are in whole seconds. An operator that starts later could not tell a pod that follows in this one from the stranded.
	if wait := processBegan(p.Snapshot).Add(time.Second).Sub(p.Now); wait > 0 && wait <= time.Second {
		p.wake = sooner(p.wake, wait)
		return
	}
	for _, pod := range stranded {
		if out := p.delete(ctx, observed.PodRef(pod), pod.GetObjectMeta()); out.Err != nil {
			return
		}
	}
	p.state.reattachedTo = p.BackendProcess()
}

// processBegan returns since when the present process of the backend can be attached to; zero if that is not known.
func processBegan(v *observed.Snapshot) (began time.Time) {
	for _, pod := range v.BackendPods() {
		if pod.Name != render.OnlyBackendPod(v.Key.Name) {
			continue
		}
		if pod.Ready != nil && pod.Ready.Status == corev1.ConditionTrue {
			began = pod.Ready.LastTransitionTime.Time
		}
		for i := range pod.Statuses {
			if running := pod.Statuses[i].Running; running != nil && running.StartedAt.After(began) {
				began = running.StartedAt.Time
			}
		}
	}
	return began
}
