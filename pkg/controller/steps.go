// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"

	"github.com/freehold-dev/freehold/pkg/controller/observed"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// Step is a part of a pass over an MCPServer that is not being deleted.
type Step struct {
	Name string
	// Does says what the step does, in the words of the docs.
	Does string

	take func(ctx context.Context, p *pass) (goesOn bool)
}

// The steps, in the order in which a pass takes them.
var (
	// beginning are the steps without which nothing is done. One that does not go on ends the pass.
	beginning = []Step{
		{"takeover", "decides whether to take over what ToolHive has made, or whose turn it is; otherwise reports why not", beginTakeover},
		{"finalizer", "owns the finalizer, and has the API server confirm the MCPServer where a child is in doubt", ownFinalizer},
		{"inputs", "collects the objects that the MCPServer refers to", collectInput},
	}
	// acting are the steps that bring the children about. After one that does not go on the pass reports.
	acting = []Step{
		{"settled pass", "recalls how an earlier pass has left the same children for the same input, which leaves nothing to do", recallSettled},
		{"render", "turns the MCPServer and its inputs into intents", renderIntents},
		{"references", "has reads confirm references where a child claims to be made from newer ones", always(confirmReferences)},
		{"turns", "holds the proxy back until its turn, if a reference has changed that many MCPServers may share", always(awaitTurn)},
		{"ConfigMaps", "forgets the ConfigMaps that are not wanted any more", always(forgetConfigMaps)},
		{"children", "writes the intents, each after those that it depends on", unlessBlocked(writeChildren)},
		{"replicas", "writes the numbers of replicas, or leaves them to others", unlessBlocked(writeReplicas)},
		{"restart", "deletes the proxies for which the author of the MCPServer does not want to wait", unlessBlocked(restartAtOnce)},
		{"pruning", "deletes the children that are not wanted, and that no pod uses or may come to use", unlessBlocked(prune)},
		{"conflicts", "recalls the conflicts of writers that have made no attempt", always(recallConflicts)},
		{"requests", "carries out what the author asks for by annotations: to take fields, or to leave them to others", always(followRequests)},
		{"settling", "remembers how it has left the children, if nothing is left to do", always(settle)},
	}
	// reporting are the steps that look after pods and write the status. One that does not go on ends the pass.
	reporting = []Step{
		{"observation", "collects what the status is computed from", observe},
		{"proxy recovery", "deletes proxies that wait out a back-off although their backend is back", always(recoverFailedProxies)},
		{"reattachment", "deletes proxies that are attached to a process that has ended, where the Deployment cannot follow", always(reattachStranded)},
		{"rollouts", "looks at the rollouts, and evicts the next pod of the backend where Kubernetes does not", always(continueRollouts)},
		{"status", "computes the status, writes it if it differs, and records events about what is new in it", always(reportStatus)},
	}
)

// Steps returns all steps, in their order.
func Steps() []Step { return slices.Concat(beginning, acting, reporting) }

// reconcile carries out what an MCPServer asks for, and reports how far that has come.
func (p *pass) reconcile(ctx context.Context) {
	if !p.takeAll(ctx, beginning) {
		return
	}
	p.takeAll(ctx, acting)
	if p.ended || p.shard.isLost() {
		return
	}
	p.observation.Notices = append(p.observation.Notices, p.takeover.progress()...)
	if !p.discovered {
		p.takeAll(ctx, reporting)
	}
}

func (p *pass) takeAll(ctx context.Context, steps []Step) (goesOn bool) {
	return !slices.ContainsFunc(steps, func(s Step) bool { return !s.take(ctx, p) })
}

// always is a step after which the pass goes on.
func always(take func(ctx context.Context, p *pass)) func(ctx context.Context, p *pass) bool {
	return func(ctx context.Context, p *pass) bool {
		take(ctx, p)
		return true
	}
}

// unlessBlocked leaves such a step out while the finalizer is refused.
func unlessBlocked(take func(ctx context.Context, p *pass)) func(ctx context.Context, p *pass) bool {
	return always(func(ctx context.Context, p *pass) {
		if !p.blocked {
			take(ctx, p)
		}
	})
}

func collectInput(ctx context.Context, p *pass) (known bool) {
	p.input, known = p.inputOf(ctx, p.Snapshot)
	return known
}

func recallSettled(_ context.Context, p *pass) bool {
	known := p.state.settled
	p.refusedBefore = len(p.refused)
	if p.blocked || !p.takeover.isIdle() || known == nil || known.input != inputHash(p.Snapshot, p.input) {
		return true
	}
	p.refused = append(p.refused, known.conflicts...)
	p.unwritten, p.unattempted = p.unwritten.Union(known.unwritten), known.unattempted
	p.observation = ofResult(p.Server, &known.result, nil)
	return false
}

func renderIntents(ctx context.Context, p *pass) bool {
	result, err := render.Render(p.input, p.config.Options)
	if invalid, ok := errors.AsType[*render.InvalidError](err); ok {
		// The last good state stays.
		p.takeover.unrendered = true
		p.observation = status.Observation{Invalid: findings(invalid.Problems, metav1.ConditionFalse)}
		return false
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot render")
		p.retry, p.ended = retryBackoff, true
		return false
	}
	p.result = result
	p.takeover.replicas, p.takeover.unrendered = writersOfReplicas(result.Intents), len(result.Held) > 0
	p.references = writers.References(inventory.Proxy, result.References)
	return true
}

func forgetConfigMaps(_ context.Context, p *pass) {
	if len(p.result.Held) > 0 || p.queued != nil {
		return // The proxy keeps those that it has.
	}
	wanted := wantedConfigs(p.Key, p.result.Intents)
	for _, ref := range p.state.configMaps {
		if !slices.Contains(wanted, ref) {
			p.applier.Forget(ref)
			delete(p.state.unlabelled, ref)
		}
	}
	p.state.configMaps = wanted
}

func writeReplicas(ctx context.Context, p *pass) {
	for _, workload := range inventory.Workloads() {
		p.scale(ctx, workload, p.result)
	}
}

func restartAtOnce(ctx context.Context, p *pass) {
	superseded, wait := immediateRestart(p.Snapshot)
	p.wake = sooner(p.wake, wait)
	for _, pod := range superseded {
		p.delete(ctx, observed.PodRef(pod), pod.GetObjectMeta())
	}
}

func prune(ctx context.Context, p *pass) {
	in := pruning{p.Snapshot, p.result, p.references, p.unwritten, slices.Concat(p.forged, p.confirmed), p.takeover.intruded}
	unused, gone := in.decide()
	for _, ref := range unused {
		p.delete(ctx, ref, p.Object(ref))
	}
	for _, ref := range gone {
		if len(p.neighbours(p.Key, ref)) == 0 { // Another MCPServer may be about to make it.
			p.applier.Forget(ref)
		}
	}
}

func followRequests(ctx context.Context, p *pass) {
	complete := !p.blocked && !p.made && p.held == 0 && len(p.result.Held) == 0 && !slices.ContainsFunc(p.refused, isUnanswered)
	p.take(ctx, complete)
	p.observation = ofResult(p.Server, p.result, p.capped)
	p.observation.Requests = p.resolution.findings(complete, p.contested(), slices.ContainsFunc(p.refused, losesTrack))
}

// ofResult returns what to report about what was rendered.
func ofResult(server *v1beta1.MCPServer, result *render.Result, capped []status.Finding) status.Observation {
	spec := slices.Concat(notices(result.Notices), findings(result.Warnings, metav1.ConditionFalse))
	return status.Observation{
		Notices: withCappings(server, spec, capped),
		Held:    findings(result.Held, metav1.ConditionFalse),
		Hashes:  result.Hashes, SharedSessions: result.SharedSessions, Unshared: result.Unshared, URL: render.URL(server),
	}
}

func settle(_ context.Context, p *pass) {
	if p.hasSettled(p.result) {
		told := *p.result
		told.Intents, told.Absent = nil, nil
		p.state.settled = &settledPass{inputHash(p.Snapshot, p.input), told, slices.Clone(p.refused[p.refusedBefore:]), p.unwritten.Clone(), p.unattempted}
	}
}

// observe collects what the status is computed from, but for the pods. It ends the pass where the namespace is being deleted: everything
// goes then, one object after the other, and each refusal would be reported.
func observe(_ context.Context, p *pass) bool {
	if slices.ContainsFunc(p.refused, namespaceEnds) {
		return false
	}
	o := &p.observation
	for i := range o.Held {
		o.Held[i].Message += " " + enforced(p.Snapshot)
	}
	o.Withheld = p.blocked || p.unwritten.HasAny(p.DeploymentRef(), p.StatefulSetRef())
	o.HashesUnused = p.Deployment() != nil && (p.blocked || len(o.Held) > 0 || p.unwritten.Has(p.DeploymentRef()))
	o.Server, o.Deployment, o.StatefulSet, o.ProxyPods = p.Server, p.Deployment(), p.StatefulSet(), p.ProxyPods()
	o.NoService = !p.HasService()
	o.LosesSessions = render.LosesSessions(o.ProxyPods, p.config.Options)
	return true
}

// namespaceEnds reports whether a write was refused because its namespace is being deleted.
func namespaceEnds(refusal error) bool {
	return apierrors.HasStatusCause(refusal, corev1.NamespaceTerminatingCause)
}

func recoverFailedProxies(ctx context.Context, p *pass) {
	recovery := recoverProxies(p.Snapshot, p.state.failedProxies)
	p.state.failedProxies, p.observation.Recovering = recovery.failed, recovery.recovering
	for _, pod := range recovery.doomed {
		p.delete(ctx, observed.PodRef(pod), pod.GetObjectMeta())
	}
}

func continueRollouts(ctx context.Context, p *pass) {
	rollouts, o := followRollouts(p.Snapshot), &p.observation
	p.wake = sooner(p.wake, rollouts.wake)
	if rollouts.next != nil {
		out := p.evict(ctx, rollouts.next)
		p.wake = sooner(p.wake, out.RetryAfter) // A budget will allow it later; a pod said to be gone may be there. No event reports it.
		if detail, budget := apply.BudgetInTheWay(out.Err); budget {
			rollouts.backend = heldByBudget(rollouts.backend, rollouts.next, detail)
		} else if out.Err != nil {
			p.recordOutcome(out)
		}
	}
	created, wait := p.state.createBy(rollouts.backend, &p.Server.Status, p.Now)
	p.wake = sooner(p.wake, wait)
	klog.FromContext(ctx).V(4).Info("Looked at rollouts", "backend", created, "proxy", rollouts.proxy)
	o.Backend, o.Proxy, o.Images = created, rollouts.proxy, rollouts.images
	backend, proxy := o.Rollouts()
	p.state.publish(o.StatefulSet, backend, proxy)
}

func reportStatus(ctx context.Context, p *pass) {
	o := p.observation
	observeRefusals(p.Snapshot, p.refused, &o)
	o.Contested, o.Doubtful = intrusion(p.Snapshot, p.refused), isDoubtful(p.Server, &p.state.told, p.refused, p.unattempted)
	p.tellTurn(&o)
	tell, wake := isWorthTelling(&o, p.refused, len(p.capped), p.state.observationLeft(p.Now, o.Backend, o.Proxy))
	if !tell {
		p.wake = sooner(p.wake, wake)
		return
	}
	o.Unreported, o.Conflicts = p.state.pending, p.state.told.conflicts
	o.Notices = append(o.Notices, unsharedSessions(o)...)
	p.takeover.reporting = true
	next, o := compose(ctx, &p.takeover, p.statusWriter(), o, p.config.Clock.Now())
	if wait := p.state.statusBackoff.Left(p.config.Clock.Now()); wait > 0 && p.state.statusBackoff.again(p.Server, next) {
		p.wake = sooner(p.wake, wait)
		return
	}
	out := p.write(ctx, managers.Status, apply.Request{Object: observed.ServerRef(p.Key), Config: status.Intent(p.Server, next)})
	p.state.notePending(out.Err, next.Conditions)
	if out.Err == nil {
		p.state.told = p.tells(&o, &next)
	}
	if out.Err == nil && out.Action != apply.ActionNone {
		if p.state.statusBackoff.again(p.Server, next) {
			klog.FromContext(ctx).Info("Another process writes the status under the same field manager: are two operators running?",
				"fieldManager", managers.Status, "nextWriteIn", p.state.statusBackoff.Begin(p.config.Clock.Now(), statusBounds))
		}
		p.state.statusBackoff.written = fingerprint(p.Server, next)
		p.recordEvents(p.Server, status.NewEvents(p.Server.Status, stored(out, next)))
	}
}
