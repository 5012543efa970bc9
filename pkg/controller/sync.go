// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// retry says whether a key is looked at again without an event.
type retry int

const (
	retryNever retry = iota
	// retryCatchUp waits for the cache.
	retryCatchUp
	retryBackoff
)

// pass is one reconciliation of one MCPServer: what it sees, and the outcomes of its writes.
type pass struct {
	*Controller
	*view
	state   *serverState
	mandate *mandate
	// takeover decides what to do with objects that ToolHive has made.
	takeover takingOver
	// forged are the children whose sources are newer than the MCPServer, as the API server has confirmed it after they were
	// seen.
	forged []apply.ObjectRef
	// confirmed are the children that record states of references that never existed.
	confirmed []apply.ObjectRef
	// blocked is set when the finalizer is refused, so that no child is written.
	blocked bool

	// refused are the writes that were not made or not accepted.
	refused []error
	// answered is set when one of them is new, and not what a write met with before.
	answered bool
	// unwritten are the objects of intents that were refused, or held back because of a refused one; held counts the latter.
	unwritten sets.Set[apply.ObjectRef]
	held      int
	// attempted are the parts of objects that the pass has tried to write. unattempted are those objects of the
	// others that this operator has not tried to write either, so that it is not known whether others own fields of them.
	attempted   sets.Set[part]
	unattempted []apply.ObjectRef
	// queued says what the proxy waits for, if it waits for its turn to be replaced.
	queued *turnWait
	// queuedAgain is set when its last turn ended with a refusal.
	queuedAgain bool
	// made is set when an object was made, or is still to be made.
	made bool
	// capped are numbers of replicas that were set from outside and do not stay.
	capped []status.Finding
	// discovered reports that the pass has found an object that no informer shows. The next one, which begins at once, knows it.
	discovered bool
	retry      retry
	// wake is when to look again in any case; 0 for not.
	wake time.Duration
}

// part is a writer's part of an object.
type part struct {
	writer string
	object apply.ObjectRef
}

// sync brings one MCPServer's children and status about. It reads from caches alone.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) retry {
	// Nothing is read before this: the caches may catch up at any moment, and what was read earlier does not.
	state := c.states.get(key)
	places := state.places(key)
	if !c.caughtUp(key, places) {
		klog.FromContext(ctx).V(4).Info("Waiting for the cache to show our own last write")
		traceEnd(ctx, OutcomeWaiting)
		return retryCatchUp
	}
	server := c.caches.server(key)
	if server == nil {
		c.forget(ctx, key)
		c.wakeNeighbours(key)
		traceEnd(ctx, OutcomeGone)
		return retryNever
	}
	if state.uid != server.UID && state.uid != "" {
		c.forget(ctx, key)
		state = c.states.get(key)
		places = state.places(key)
	}
	state.uid = server.UID
	traceGeneration(ctx, server)
	wake := c.lookAgain(ctx, server, state, places)
	p := &pass{Controller: c, state: state, view: c.look(key, server, state, places), mandate: newMandate(c.config.Selector, c.config.Servers, server), unwritten: sets.New[apply.ObjectRef](), attempted: sets.New[part](), wake: wake}
	p.takeover = takingOver{view: p.view, writers: c.clients.registry.Writers}
	if server.DeletionTimestamp != nil {
		c.takeovers.release(key) // Another finalizer may keep it for long.
		state.published.Store(nil)
		c.configRollouts.release(key)
		c.forgetConflicts(key)
		p.end(ctx)
	} else {
		p.reconcile(ctx)
		p.wake = sooner(p.wake, c.leaveSlot(&p.takeover, p.refused))
		p.wake = sooner(p.wake, p.leaveTurn())
	}
	traceEnd(ctx, p.takeover.outcome(), p.refused...)
	if p.isRepeatedSoon() {
		c.queue.Again(key)
	}
	if p.wake > 0 {
		// A wake-up that comes sooner takes its place; that pass asks for what is left of the wait.
		c.queue.AddAfter(key, p.wake)
	}
	return p.retry
}

// shortly is how soon a pass is repeated that keeps its level: it has the first attempts after a refusal that passes, and not one that lasts.
const shortly = 2 * time.Second

// isRepeatedSoon reports whether the pass has not done its work, for a reason that may be over in a moment: what it found comes first,
// another client was faster, or the API server was overloaded.
func (p *pass) isRepeatedSoon() bool {
	return p.discovered || p.wake > 0 && p.wake <= shortly && slices.ContainsFunc(p.refused, func(refusal error) bool {
		class := apply.ClassOf(refusal)
		return class == apply.ClassMoved || class == apply.ClassTransient
	})
}

// reconcile carries out what an MCPServer asks for, and reports how far that has come.
func (p *pass) reconcile(ctx context.Context) {
	if !p.mayReconcile(ctx) || !p.ownFinalizer(ctx) {
		return
	}
	input, known := p.input(ctx, p.view)
	if !known {
		return
	}
	observation, valid := p.bringAbout(ctx, input)
	if !valid || p.mandate.isLost() {
		return
	}
	observation.Notices = append(observation.Notices, p.takeover.progress()...)
	if !p.discovered {
		p.report(ctx, observation)
	}
}

// bringAbout renders the input and writes the children, unless they are known to be up to date. It returns what to report; ok is
// false when there is nothing.
func (p *pass) bringAbout(ctx context.Context, input render.Input) (observation status.Observation, ok bool) {
	if !p.blocked && p.takeover.isIdle() {
		if known := p.state.settled; known != nil && known.input == inputHash(p.view, input) {
			p.refused = append(p.refused, known.conflicts...)
			p.unwritten, p.unattempted = p.unwritten.Union(known.unwritten), known.unattempted
			return observed(p.server, &known.result, nil), true
		}
	}
	result, err := render.Render(input, p.config.Options)
	if invalid, ok := errors.AsType[*render.InvalidError](err); ok {
		// The last good state stays.
		p.takeover.unrendered = true
		return status.Observation{Invalid: findings(invalid.Problems, metav1.ConditionFalse)}, true
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot render")
		p.retry = retryBackoff
		return observation, false
	}
	before := len(p.refused)
	observation = p.carryOut(ctx, result)
	if p.hasSettled(result) {
		told := *result
		told.Intents, told.Absent = nil, nil
		p.state.settled = &settledPass{inputHash(p.view, input), told, slices.Clone(p.refused[before:]), p.unwritten.Clone(), p.unattempted}
	}
	return observation, true
}

// carryOut brings the children in line with what was rendered, and returns what to report.
func (p *pass) carryOut(ctx context.Context, result *render.Result) (observation status.Observation) {
	p.takeover.replicas, p.takeover.unrendered = writersOfReplicas(result.Intents), len(result.Held) > 0
	p.references = writers.References(inventory.Proxy, result.References)
	p.confirmReferences(ctx)
	p.pace(result)
	if len(result.Held) == 0 && p.queued == nil { // Otherwise the proxy keeps those that it has.
		before, wanted := p.state.configMaps, wantedConfigs(p.key, result.Intents)
		for _, ref := range before {
			if !slices.Contains(wanted, ref) {
				p.applier.Forget(ref)
				delete(p.state.unlabelled, ref)
			}
		}
		p.state.configMaps = wanted
	}
	if !p.blocked {
		p.writeChildren(ctx, result)
		for _, workload := range inventory.Workloads() {
			p.scale(ctx, workload, result)
		}
		superseded, wait := immediateRestart(p.view)
		p.wake = sooner(p.wake, wait)
		for _, pod := range superseded {
			p.delete(ctx, podRef(pod), pod.GetObjectMeta())
		}
		prune := pruning{p.view, result, p.unwritten, slices.Concat(p.forged, p.confirmed), p.takeover.intruded}
		unused, gone := prune.decide()
		for _, ref := range unused {
			p.delete(ctx, ref, p.object(ref))
		}
		for _, ref := range gone {
			if len(p.neighbours(p.key, ref)) == 0 { // Another MCPServer may be about to make it.
				p.applier.Forget(ref)
			}
		}
	}
	p.reviewConflicts(result)
	complete := !p.blocked && !p.made && p.held == 0 && len(result.Held) == 0 && !slices.ContainsFunc(p.refused, isUnanswered)
	p.take(ctx, complete)
	observation = observed(p.server, result, p.capped)
	observation.Requests = p.resolution.findings(complete, p.contested(), slices.ContainsFunc(p.refused, losesTrack))
	return observation
}

// observed returns what to report about what was rendered.
func observed(server *v1beta1.MCPServer, result *render.Result, capped []status.Finding) status.Observation {
	spec := slices.Concat(notices(result.Notices), findings(result.Warnings, metav1.ConditionFalse))
	return status.Observation{
		Notices: withCappings(server, spec, capped),
		Held:    findings(result.Held, metav1.ConditionFalse),
		Hashes:  result.Hashes, SharedSessions: result.SharedSessions, Unshared: result.Unshared, URL: render.URL(server),
	}
}

// report starts proxies that wait for the backend, continues the backend's rollout, and writes the status, if it differs. It
// records events about what is new in it.
func (p *pass) report(ctx context.Context, o status.Observation) {
	if slices.ContainsFunc(p.refused, namespaceEnds) {
		return // Everything goes, one after the other. None of that is news.
	}
	for i := range o.Held {
		o.Held[i].Message += " " + enforced(p.view)
	}
	o.Withheld = p.blocked || p.unwritten.HasAny(p.deploymentRef(), p.statefulSetRef())
	o.HashesUnused = p.deployment() != nil && (p.blocked || len(o.Held) > 0 || p.unwritten.Has(p.deploymentRef()))
	o.Server, o.Deployment, o.StatefulSet, o.ProxyPods = p.server, p.deployment(), p.statefulSet(), p.proxyPods()
	o.NoService = !p.hasService()
	o.LosesSessions = render.LosesSessions(o.ProxyPods, p.config.Options)
	recovery := recoverProxies(p.view, p.state.failedProxies)
	p.state.failedProxies = recovery.failed
	for _, pod := range recovery.doomed {
		p.delete(ctx, podRef(pod), pod.GetObjectMeta())
	}
	p.reattach(ctx)
	rollouts := followRollouts(p.view)
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
	var wait time.Duration
	rollouts.backend, wait = p.state.createBy(rollouts.backend, &p.server.Status, p.now)
	p.wake = sooner(p.wake, wait)
	klog.FromContext(ctx).V(4).Info("Looked at rollouts", "backend", rollouts.backend, "proxy", rollouts.proxy)
	o.Recovering, o.Backend, o.Proxy, o.Images = recovery.recovering, rollouts.backend, rollouts.proxy, rollouts.images
	backend, proxy := o.Rollouts()
	p.state.publish(o.StatefulSet, backend, proxy)
	observeRefusals(p.view, p.refused, &o)
	o.Contested, o.Doubtful = intrusion(p.view, p.refused), isDoubtful(p.server, &p.state.told, p.refused, p.unattempted)
	p.tellTurn(&o)
	tell, wake := isWorthTelling(&o, p.refused, len(p.capped), p.state.observationLeft(p.now, rollouts.backend, rollouts.proxy))
	if !tell {
		p.wake = sooner(p.wake, wake)
		return
	}
	o.Unreported, o.Conflicts = p.state.pending, p.state.told.conflicts
	o.Notices = append(o.Notices, unsharedSessions(o)...)
	p.takeover.reporting = true
	next, o := compose(ctx, &p.takeover, p.statusWriter(), o, p.config.Clock.Now())
	if wait := p.state.statusBackoff.Left(p.config.Clock.Now()); wait > 0 && p.state.statusBackoff.again(p.server, next) {
		p.wake = sooner(p.wake, wait)
		return
	}
	out := p.write(ctx, managers.Status, apply.Request{Object: serverRef(p.key), Config: status.Intent(p.server, next)})
	p.state.notePending(out.Err, next.Conditions)
	if out.Err == nil {
		p.state.told = p.tells(&o, &next)
	}
	if out.Err == nil && out.Action != apply.ActionNone {
		if p.state.statusBackoff.again(p.server, next) {
			klog.FromContext(ctx).Info("Another process writes the status under the same field manager: are two operators running?",
				"fieldManager", managers.Status, "nextWriteIn", p.state.statusBackoff.Begin(p.config.Clock.Now(), statusBounds))
		}
		p.state.statusBackoff.written = fingerprint(p.server, next)
		p.recordEvents(p.server, status.NewEvents(p.server.Status, stored(out, next)))
	}
}

// namespaceEnds reports whether a write was refused because its namespace is being deleted.
func namespaceEnds(refusal error) bool {
	return apierrors.HasStatusCause(refusal, corev1.NamespaceTerminatingCause)
}

// sooner returns the shorter of two waits, of which 0 is none.
func sooner(one, other time.Duration) time.Duration {
	if one == 0 || other > 0 && other < one {
		return other
	}
	return one
}
