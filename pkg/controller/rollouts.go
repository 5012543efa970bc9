// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
)

// followRollouts tells how far the rollouts of the two workloads have come, and moves that of the backend on where
// Kubernetes does not. tell is false as long as what is known is about to change, so that it is not worth a status.
func (p *pass) followRollouts(ctx context.Context, observation *status.Observation) (tell bool) {
	now, pods, set := p.config.Clock.Now(), p.backendPods(), observation.StatefulSet
	by := p.driver()
	backend, backendWake := rollout.StatefulSet(set, pods, by, now)
	proxy, proxyWake := rollout.Deployment(observation.Deployment, observation.ProxyPods, now)
	next, replaceWake := rollout.Replace(set, pods, by.Driven, now)
	for _, wake := range []time.Duration{backendWake, proxyWake, replaceWake} {
		if wake > 0 {
			p.wakeAfter(wake)
		}
	}
	if next != nil && backend.Phase == rollout.Progressing {
		p.replace(ctx, next, &backend)
	}
	if d := observation.Deployment; d != nil && proxy.Phase == rollout.Complete {
		if to, attached := d.Spec.Template.Annotations[v1beta1.AnnotationAttachedTo]; attached && to != p.backendProcess() {
			proxy.Phase, proxy.Reason = rollout.Progressing, rollout.Replacing
		}
	}
	observation.Backend, observation.Proxy, observation.Images = backend, proxy, render.ImagesOf(pods)
	klog.FromContext(ctx).V(4).Info("Looked at rollouts", "backend", backend, "proxy", proxy)
	p.rollouts.note(p.key, set, tierStates{backend, proxy})
	observeRefusals(p.view, p.refused, observation)
	wait := p.rollouts.wait(p.key, now, backend, proxy)
	news := len(observation.Invalid) + len(observation.Refusals) + len(observation.Requests) + len(p.capped)
	switch {
	case p.server.Status.Phase == "" || news > 0:
		return true // That is to be told whatever becomes of the pods, and another pass may not know it.
	case len(observation.Delays) > 0:
		return true
	case slices.ContainsFunc(p.refused, isMomentary):
		return false // A write that lost a race, or got no answer, is made again at once, and what it brings about is the news.
	case wait > 0:
		p.wakeAfter(wait)
		return false
	default:
		return true
	}
}

// replace lets a pod of the backend go, if its PodDisruptionBudget allows it. The StatefulSet's controller makes another
// one. What was looked at is a precondition, so no pod is replaced that has changed since, and none twice.
func (p *pass) replace(ctx context.Context, pod *corev1.Pod, state *rollout.State) {
	ref := childRef(podKind, pod.Namespace, pod.Name)
	out := p.applier.Delete(ctx, ref, pod, p.clients.eviction(pod.Namespace))
	detail, budget := apply.BudgetInTheWay(out.Err)
	switch {
	case budget:
		// It will be allowed some time, which nothing tells.
		p.wakeAfter(out.RetryAfter)
		state.Phase, state.Reason, state.Pod, state.Detail = rollout.Waiting, v1beta1.ReasonDisruptionBudget, pod.Name, detail
	case out.Err != nil:
		p.recordOutcome(out)
	case out.Action == apply.ActionDeleted:
		if p.config.Recorder != nil {
			// Events that are about other pods are other events, whatever the version of the MCPServer.
			p.config.Recorder.Eventf(p.server, &corev1.ObjectReference{
				Kind: podKind.Kind, APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			}, corev1.EventTypeNormal, v1beta1.EventReasonReplacingPod, status.ActionRollOut,
				"Pod %s has an earlier template and is evicted", pod.Name)
		}
	}
}

// isNews tells whether the user is to be told of a refusal by now.
func isNews(err error) bool {
	refusal, ok := errors.AsType[*apply.Refusal](err)
	return ok && refusal.News()
}

// isUnanswered tells whether a refusal says nothing about what was asked for: another answer may come without any change.
func isUnanswered(err error) bool {
	switch apply.ClassOf(err) {
	case apply.ClassMoved, apply.ClassTransient, apply.ClassForbidden:
		return true
	}
	return false
}

// observeRefusals adds to an observation what was refused, and what follows from it for the pods and for what is told of them.
func observeRefusals(v *view, refused []error, observation *status.Observation) {
	observation.Refusals, observation.Delays = refusals(v, refused)
	observation.Unapplied = slices.ContainsFunc(refused, func(err error) bool { return concernsPods(v.server, err) })
	observation.Unwritten = slices.ContainsFunc(refused, func(err error) bool { return isDue(v.server, err) }) ||
		slices.ContainsFunc(refused, isMomentary) && meta.IsStatusConditionFalse(v.server.Status.Conditions, v1beta1.ConditionReady)
	for _, err := range refused {
		class := apply.ClassOf(err)
		observation.Unsettled = observation.Unsettled || apply.Policies()[class].Passes
		observation.Forbidden = observation.Forbidden || class == apply.ClassForbidden
	}
}

// isMomentary tells whether a refusal should be over when the write is made again, which is at once.
func isMomentary(err error) bool {
	class := apply.ClassOf(err)
	return !isNews(err) && (class == apply.ClassMoved || class == apply.ClassTransient)
}

// isDue tells whether a refusal keeps the spec from being carried out: any but the first of a moment at a generation of the
// MCPServer of which the status tells already.
func isDue(server *v1beta1.MCPServer, err error) bool {
	return isNews(err) || server.Status.ObservedGeneration != server.Generation
}

// concernsPods tells whether pods are not as they should be because of a refusal.
func concernsPods(server *v1beta1.MCPServer, err error) bool {
	var refusal *apply.Refusal
	if !errors.As(err, &refusal) || refusal.Object.Kind != managers.Deployment && refusal.Object.Kind != managers.StatefulSet {
		return false
	}
	if !isDue(server, err) {
		return false // A race was lost, or an answer, and the spec is what it was.
	}
	conflict, ok := errors.AsType[*apply.ConflictError](err)
	return !ok || slices.ContainsFunc(conflict.Fields, func(f apply.FieldConflict) bool {
		return strings.HasPrefix(f.Path, ".spec.template")
	})
}
