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
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
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
		if to, attached := d.Spec.Template.Annotations[render.AnnotationAttachedTo]; attached && to != p.backendProcess() {
			proxy.Phase, proxy.Reason = rollout.Progressing, rollout.ReasonReplacing
		}
	}
	observation.Backend, observation.Proxy, observation.Images = backend, proxy, render.ImagesOf(pods)
	klog.FromContext(ctx).V(4).Info("Looked at rollouts", "backend", backend, "proxy", proxy)
	p.rollouts.note(p.key, set, tierStates{backend, proxy})
	observation.Unapplied, observation.Refusals = slices.ContainsFunc(p.refused, p.concernsPods), p.refusals()
	wait := p.rollouts.wait(p.key, now, backend, proxy)
	news := len(observation.Invalid) + len(observation.Refusals) + len(observation.Requests) + len(p.capped)
	switch {
	case p.server.Status.Phase == "" || news > 0:
		return true // That is to be told whatever becomes of the pods, and another pass may not know it.
	case p.overtaken:
		return false // The write that lost a race is made again at once, and what it brings about is the news.
	case wait > 0:
		p.wakeAfter(wait)
		return false
	default:
		return true
	}
}

// driver tells who replaces the backend's pods under OnDelete.
func (p *pass) driver() rollout.Driver {
	updates := render.UpdatesOf(p.server)
	return rollout.Driver{Driven: updates.Driven, Paused: updates.Driven && updates.Paused}
}

// replace lets a pod of the backend go, if its PodDisruptionBudget allows it. The StatefulSet's controller makes another
// one. What was looked at is a precondition, so no pod is replaced that has changed since, and none twice.
func (p *pass) replace(ctx context.Context, pod *corev1.Pod, state *rollout.State) {
	ref, sent := childRef(podKind, pod.Namespace, pod.Name), false
	err := p.applier.Delete(ctx, ref, pod, p.clients.eviction(pod.Namespace, &sent))
	budget, refused := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause)
	switch {
	case err == nil && !sent: // The cache does not show it yet.
	case err == nil:
		if p.config.Recorder != nil {
			// Events that are about other pods are other events, whatever the version of the MCPServer.
			p.config.Recorder.Eventf(p.server, &corev1.ObjectReference{
				Kind: podKind.Kind, APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			}, corev1.EventTypeNormal, status.ReasonReplacingPod, status.ActionRollOut,
				"Pod %s has an earlier template and is evicted", pod.Name)
		}
	case refused:
		// It will be allowed some time, which nothing tells.
		p.retryAs(retryBackoff)
		state.Phase, state.Reason, state.Pod, state.Detail = rollout.Waiting, rollout.ReasonBudget, pod.Name, budget.Message
	default:
		p.take(apply.Outcome{Object: ref, Action: apply.ActionRefused, Err: err})
	}
}

// concernsPods tells whether pods are not as they should be because of a refusal.
func (p *pass) concernsPods(err error) bool {
	var refusal *apply.Refusal
	if !errors.As(err, &refusal) || refusal.Object.Kind != vocabulary.Deployment && refusal.Object.Kind != vocabulary.StatefulSet {
		return false
	}
	if apply.Policies()[refusal.Class].Retry == apply.RetrySoon && p.server.Status.ObservedGeneration == p.server.Generation {
		return false // A race was lost, and the spec is what it was.
	}
	conflict, ok := errors.AsType[*apply.ConflictError](err)
	return !ok || slices.ContainsFunc(conflict.Fields, func(f apply.FieldConflict) bool {
		return strings.HasPrefix(f.Path, ".spec.template")
	})
}
