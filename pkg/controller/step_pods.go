// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/workload"
)

func restartAtOnce(p *pass, do *executor) {
	superseded, wait := immediateRestart(p.Snapshot)
	do.wakeIn(wait)
	do.deletePods(superseded)
}

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
		if pod.RestartedAt != written && pod.CreationTimestamp.Time.Before(at) {
			doomed = append(doomed, pod)
		}
	}
	return doomed, 0
}

func recoverFailedProxies(p *pass, do *executor) {
	recovery := recoverProxies(p.Snapshot, p.state.failedProxies)
	p.state.failedProxies, p.observation.Recovering = recovery.failed, recovery.recovering
	do.deletePods(recovery.doomed)
}

// recoveryDecision is what to do about proxies that failed for want of a backend.
type recoveryDecision struct {
	// failed are those that have not had a new start yet.
	failed map[types.UID]failure
	// doomed are those of them that are to be deleted, which gives them one.
	doomed []*workload.Pod
	// recovering reports that the backend is back, and they are not.
	recovering bool
}

// recoverProxies decides on a snapshot, and on which pods of the proxy failed before while their backend was not ready.
//
// A runner exits when its backend is not ready, and the kubelet starts it again after waits of up to five minutes. Once
// the backend is back there is nothing to wait for: a pod that waits out its back-off is deleted, and the ReplicaSet
// makes one that starts at once. A pod that fails with its backend ready has another problem and is left to the
// kubelet.
//
// While the backend does not serve, the pods that fail are added. Afterwards a pod stays among them until its runner was started again or
// the pod is being deleted, so a deletion that was refused is repeated.
func recoverProxies(v *observed.Snapshot, before map[types.UID]failure) (r recoveryDecision) {
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

// stranded returns the pods of a proxy with transport stdio whose runner is attached to a process that has ended, while the Deployment
// cannot name the process that has taken its place: the template is held back or refused as a whole, be it because of a reference that
// cannot be used. A runner does not recover by itself, see AnnotationAttachedTo. If such a pod is deleted, the one that follows has the same
// template and attaches to the present process.
func stranded(p *pass) []*workload.Pod {
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
func reattachStranded(p *pass, do *executor) {
	stranded := stranded(p)
	if len(stranded) == 0 {
		return
	}
	// Times are in whole seconds. An operator that starts later could not tell a pod that follows in this one from the stranded.
	if wait := processBegan(p.Snapshot).Add(time.Second).Sub(p.Now); wait > 0 && wait <= time.Second {
		do.wakeIn(wait)
		return
	}
	if do.deletePods(stranded) {
		p.state.reattachedTo = p.BackendProcess()
	}
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

func continueRollouts(p *pass, do *executor) {
	rollouts, o := followRollouts(p.Snapshot), &p.observation
	do.wakeIn(rollouts.again)
	if rollouts.next != nil {
		if detail, kept := do.evict(rollouts.next); kept {
			// The PodDisruptionBudget of the pod keeps the rollout from going on.
			state := &rollouts.backend
			state.Phase, state.Reason, state.Pod, state.Detail = rollout.Waiting, v1beta1.ReasonDisruptionBudget, rollouts.next.Name, detail
		}
	}
	stalled := meta.FindStatusCondition(p.Server.Status.Conditions, v1beta1.ConditionStalled)
	reported := stalled != nil && (stalled.Reason == v1beta1.ReasonPodsMissing || stalled.Reason == v1beta1.ReasonFailedCreate)
	created, wait := p.state.creation.Follow(rollouts.backend, reported, p.Now, do.podRefusal)
	do.wakeIn(wait)
	klog.FromContext(do.ctx).V(4).Info("Looked at rollouts", "backend", created, "proxy", rollouts.proxy)
	o.Backend, o.Proxy, o.Images = created, rollouts.proxy, rollouts.images
	backend, proxy := o.Rollouts()
	p.state.publish(o.StatefulSet, backend, proxy)
}

// rolloutStates is how far the rollouts of the two workloads have come.
type rolloutStates struct {
	tierStates
	// images are those of the ready pods of the backend.
	images []string
	// next is the pod of the backend that is to be replaced, where Kubernetes does not; nil for none.
	next *workload.Pod
	// again is when to look again although nothing has happened; 0 for never.
	again time.Duration
}

// followRollouts looks at the two workloads and their pods.
func followRollouts(v *observed.Snapshot) (r rolloutStates) {
	deployment, set, pods, by := v.Deployment(), v.StatefulSet(), v.BackendPods(), v.Driver()
	var backendWake, proxyWake, nextWake time.Duration
	r.backend, backendWake = rollout.StatefulSet(set, pods, by, v.Now)
	r.proxy, proxyWake = rollout.Deployment(deployment, v.ProxyPods(), v.Now)
	r.next, nextWake = rollout.Replace(set, pods, by.Driven, v.Now)
	r.again = priorityqueue.Sooner(priorityqueue.Sooner(backendWake, proxyWake), nextWake)
	if r.backend.Phase != rollout.Progressing {
		r.next = nil
	}
	if deployment != nil && r.proxy.Phase == rollout.Complete {
		if to := deployment.Template.AttachedTo; to != "" && to != v.BackendProcess() {
			r.proxy.Phase, r.proxy.Reason = rollout.Progressing, rollout.Replacing
		}
	}
	r.images = render.ImagesOf(pods)
	return r
}
