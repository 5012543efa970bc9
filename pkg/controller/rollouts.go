// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/freehold-dev/freehold/pkg/controller/observed"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// rolledOut is how far the rollouts of the two workloads have come.
type rolledOut struct {
	tierStates
	// images are those of the ready pods of the backend.
	images []string
	// next is the pod of the backend that is to be replaced, where Kubernetes does not; nil for none.
	next *workload.Pod
	// wake is when to look again although nothing has happened; 0 for never.
	wake time.Duration
}

// followRollouts looks at the two workloads and their pods.
func followRollouts(v *observed.Snapshot) (r rolledOut) {
	deployment, set, pods, by := v.Deployment(), v.StatefulSet(), v.BackendPods(), v.Driver()
	var backendWake, proxyWake, nextWake time.Duration
	r.backend, backendWake = rollout.StatefulSet(set, pods, by, v.Now)
	r.proxy, proxyWake = rollout.Deployment(deployment, v.ProxyPods(), v.Now)
	r.next, nextWake = rollout.Replace(set, pods, by.Driven, v.Now)
	r.wake = sooner(sooner(backendWake, proxyWake), nextWake)
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

// isWorthTelling reports whether an observation is worth a status: it is not while a change is about to be observed. capped is
// how many numbers of replicas do not stay, and wait is how long the controllers of workloads may take to look at a change. wake
// is when to look again.
func isWorthTelling(o *status.Observation, refused []error, capped int, wait time.Duration) (tell bool, wake time.Duration) {
	switch {
	case o.Server.Status.Phase == "", len(o.Invalid)+len(o.Held)+len(o.Refusals)+len(o.Requests)+capped > 0:
		return true, 0 // That is reported whatever happens to the pods, and another pass may not know it.
	case len(o.Delays) > 0:
		return true, 0
	case slices.ContainsFunc(refused, isMomentary):
		return false, 0 // A write that lost a race, or got no answer, is made again at once, and what it brings about is the news.
	}
	return wait == 0, wait
}

// heldByBudget returns the state of a rollout that the PodDisruptionBudget of a pod keeps from going on.
func heldByBudget(state rollout.State, pod *workload.Pod, detail string) rollout.State {
	state.Phase, state.Reason, state.Pod, state.Detail = rollout.Waiting, v1beta1.ReasonDisruptionBudget, pod.Name, detail
	return state
}

// evict lets a pod of the backend go, if its PodDisruptionBudget allows it. The StatefulSet's controller makes another
// one. What was looked at is a precondition, so no pod is replaced that has changed since, and none twice.
func (p *pass) evict(ctx context.Context, pod *workload.Pod) apply.Outcome {
	out := p.applier.Delete(ctx, observed.PodRef(pod), pod.GetObjectMeta(), guard(p.shard, p.clients.eviction(pod.Namespace)))
	if out.Err == nil && out.Action == apply.ActionDeleted && p.config.Recorder != nil {
		// Events that are about other pods are other events, whatever the version of the MCPServer.
		p.config.Recorder.Eventf(p.Server, &corev1.ObjectReference{
			Kind: observed.PodKind.Kind, APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		}, corev1.EventTypeNormal, v1beta1.EventReasonReplacingPod, status.ActionRollOut,
			"Pod %s has an earlier template and is evicted", pod.Name)
	}
	return out
}

// isNews reports whether a refusal is to be reported to the user by now.
func isNews(err error) bool {
	refusal, ok := errors.AsType[*apply.Refusal](err)
	return ok && refusal.News()
}

// isUnanswered reports whether a refusal says nothing about what was asked for: another answer may come without any change.
func isUnanswered(err error) bool {
	switch apply.ClassOf(err) {
	case apply.ClassMoved, apply.ClassTransient, apply.ClassForbidden:
		return true
	}
	return false
}

// observeRefusals adds to an observation what was refused, and what follows from it for the pods and for the report about them.
func observeRefusals(v *observed.Snapshot, refused []error, observation *status.Observation) {
	observation.Refusals, observation.Delays = refusals(v, refused)
	observation.Unapplied = slices.ContainsFunc(refused, func(err error) bool { return concernsPods(v.Server, err) })
	observation.Unwritten = slices.ContainsFunc(refused, func(err error) bool { return isDue(v.Server, err) }) ||
		slices.ContainsFunc(refused, isMomentary) && meta.IsStatusConditionFalse(v.Server.Status.Conditions, v1beta1.ConditionReady)
	for _, err := range refused {
		observation.Unsettled = observation.Unsettled || apply.Policies()[apply.ClassOf(err)].Passes
	}
}

// isMomentary reports whether a refusal should be over when the write is made again, which is at once.
func isMomentary(err error) bool {
	class := apply.ClassOf(err)
	return !isNews(err) && (class == apply.ClassMoved || class == apply.ClassTransient)
}

// isDue reports whether a refusal keeps the spec from being carried out: any but the first of a moment at a generation of the
// MCPServer that the status reports already.
func isDue(server *v1beta1.MCPServer, err error) bool {
	return isNews(err) || server.Status.ObservedGeneration != server.Generation
}

// concernsPods reports whether pods are not as they should be because of a refusal.
func concernsPods(server *v1beta1.MCPServer, err error) bool {
	var refusal *apply.Refusal
	if !errors.As(err, &refusal) || refusal.Object.Kind != managers.Deployment && refusal.Object.Kind != managers.StatefulSet {
		return false
	}
	if !isDue(server, err) {
		return false // A race was lost, or an answer, and the spec is unchanged.
	}
	conflict, ok := errors.AsType[*apply.ConflictError](err)
	return !ok || slices.ContainsFunc(conflict.Fields, func(f apply.FieldConflict) bool {
		return strings.HasPrefix(f.Path, ".spec.template")
	})
}
