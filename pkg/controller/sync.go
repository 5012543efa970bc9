// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
)

// retry says whether a key is looked at again without an event.
type retry int

const (
	retryNever retry = iota
	// retryCatchUp waits for the cache.
	retryCatchUp
	retryBackoff
)

// pass is one look at one MCPServer.
type pass struct {
	*Controller
	*view
	// refused are the writes that were not made or not accepted.
	refused []error
	// unwritten are the objects of intents that were refused, or held back because of such a one.
	unwritten sets.Set[apply.ObjectRef]
	// held are the intents that were held back.
	held []heldBack
	// capped are numbers of replicas that were set from outside and do not stay.
	capped []status.Finding
	// made tells that an object was made, or is still to be made.
	made bool
	// forged are the children whose sources are newer than the MCPServer, as the API server has confirmed it after they were
	// seen.
	forged []apply.ObjectRef
	// takeover is what is to be done with what ToolHive has made.
	takeover takingOver
	// reporting tells that the status is being written.
	reporting bool
	// discovered reports that the pass has found an object that no informer shows. The next one, which begins at once, knows it.
	discovered bool
	// blocked tells that the finalizer is refused, so that no child is written.
	blocked bool
	retry   retry
	// wake is when to look again in any case; 0 for not.
	wake time.Duration
}

// sync brings one MCPServer's children and status about. It reads from caches alone.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) retry {
	// Nothing is read before this: the caches may catch up at any moment, and what was read earlier does not.
	if !c.caughtUp(key) {
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
	p := &pass{Controller: c, unwritten: sets.New[apply.ObjectRef]()}
	p.wakeAfter(c.lookAgain(ctx, key))
	p.view = c.look(key, server)
	defer p.trace(ctx)
	if server.DeletionTimestamp != nil {
		c.takeovers.release(key) // Somebody else's finalizer may keep it for long.
		p.finalize(ctx)
	} else {
		p.run(ctx)
	}
	if p.wake > 0 {
		// A wake-up that comes sooner takes its place; whoever is then looked at asks for what is left of the wait.
		c.queue.AddAfter(key, p.wake)
	}
	return p.retry
}

// forget drops what is kept of an MCPServer that is gone.
func (c *Controller) forget(ctx context.Context, key cache.ObjectName) {
	c.configMaps.use(ctx, key)
	c.adoptions.forget(key)
	c.proxyRecovery.forget(key)
	c.rollouts.forget(key)
	c.unreported.forget(key)
	c.takeovers.release(key)
	c.takes.forget(key)
	c.applier.Forget(serverRef(key))
	for _, ref := range append(fixed(key), c.configNames.replace(key, nil)...) {
		if len(c.neighbours(key, ref)) > 0 {
			continue // It may be another one's, who is to know it still.
		}
		c.applier.Forget(ref)
		c.hidden.drop(ref)
		c.capBackoff.forget(ref)
	}
}

// caughtUp tells whether the caches show every write of ours to the MCPServer and its children.
func (c *Controller) caughtUp(key cache.ObjectName) bool {
	for _, ref := range slices.Concat(fixed(key), c.configNames.get(key), []apply.ObjectRef{serverRef(key)}) {
		if !c.applier.WriteTracker().Seen(ref, c.caches.version(ref)) {
			return false
		}
	}
	return true
}

func (p *pass) run(ctx context.Context) {
	defer p.releaseTakeoverSlot()
	if !p.mayReconcile(ctx) {
		return
	}
	unowned, ahead := p.unowned(), p.ahead()
	doubts := strings.TrimSpace(unowned + " " + ahead)
	out := p.write(ctx, managers.Finalizer, apply.Request{
		Object:  serverRef(p.key),
		Config:  toolhivev1beta1ac.MCPServer(p.key.Name, p.key.Namespace).WithFinalizers(v1beta1.Finalizer),
		Confirm: p.adoptions.due(p.key, doubts),
	})
	switch class := apply.ClassOf(out.Err); {
	case class == "" || class == apply.ClassConflict:
	case class == apply.ClassMoved && unowned == "" && ahead != "" && slices.Contains(p.server.Finalizers, v1beta1.Finalizer):
		// This cache is behind whoever wrote these children. They are left alone, and that is what is told.
		p.refused = slices.DeleteFunc(p.refused, func(err error) bool { return err == out.Err }) //nolint:errorlint // this very one
	case !slices.ContainsFunc(p.refused, isNews):
		return // It should be over in a moment.
	default:
		p.blocked = true // Children without a finalizer could be left behind. What keeps them from being written is told.
	}
	if out.Err == nil && out.Action != apply.ActionNone {
		p.adoptions.confirm(p.key, doubts)
	}
	if p.adoptions.due(p.key, doubts) {
		p.forged = nil // Not as far as is known.
	}
	observation, known := p.apply(ctx)
	if known && !p.discovered {
		p.report(ctx, observation)
	}
}

// input is what the children are rendered from. known is false when a ConfigMap that the MCPServer refers to has not
// been read yet.
func (p *pass) input(ctx context.Context) (input render.Input, known bool) {
	authz, profile := references(p.server)
	p.configMaps.use(ctx, p.key, authz, profile)
	input = render.Input{Server: p.server, BackendProcess: p.backendProcess()}
	var knowAuthz, knowProfile bool
	input.AuthzConfigMap, knowAuthz = p.configMaps.get(p.key.Namespace, authz)
	input.PermissionProfileConfigMap, knowProfile = p.configMaps.get(p.key.Namespace, profile)
	return input, knowAuthz && knowProfile
}

// apply renders and writes the children. known is false when a ConfigMap that the MCPServer refers to has not
// been read yet, and nothing can be said.
func (p *pass) apply(ctx context.Context) (observation status.Observation, known bool) {
	input, known := p.input(ctx)
	if !known {
		return observation, false
	}

	result, err := render.Render(input, p.config.Options)
	var invalid *render.InvalidError
	switch {
	case errors.As(err, &invalid):
		// The last good state stays.
		observation.Invalid = findings(invalid.Problems, metav1.ConditionFalse)
		p.takeover.unrendered = true
	case err != nil:
		klog.FromContext(ctx).Error(err, "Cannot render")
		p.retry = retryBackoff
		return observation, false
	default:
		observation.Notices = notices(result.Notices)
		observation.SharedSessions = result.SharedSessions
		for _, workload := range inventory.Workloads() {
			if wantedReplicas(result.Intents, workload.Replicas) != nil {
				p.takeover.replicas = append(p.takeover.replicas, workload.Replicas)
			}
		}
		for _, ref := range p.configNames.replace(p.key, wantedConfigs(p.key, result.Intents)) {
			p.applier.Forget(ref)
		}
		if !p.blocked {
			p.writeAll(ctx, result.Intents, p.backendServes() && (!result.SinglePod || input.BackendProcess != ""))
			for _, workload := range inventory.Workloads() {
				p.scale(ctx, workload, result)
			}
			superseded, wait := immediateRestart(p.view)
			p.wakeAfter(wait)
			p.deletePods(ctx, superseded)
			prune := pruning{view: p.view, result: result, unwritten: p.unwritten, forged: p.forged, intruded: p.takeover.intruded}
			doomed, gone := prune.decide()
			for _, ref := range doomed {
				p.delete(ctx, ref, p.object(ref))
			}
			for _, ref := range gone {
				p.applier.Forget(ref)
			}
		}
		observation.Notices = append(observation.Notices, cappings(p.server, p.capped)...)
		complete := !p.blocked && !p.made && len(p.held) == 0 && !slices.ContainsFunc(p.refused, isUnanswered)
		p.takeStatus(ctx)
		p.recordTake(ctx, complete)
		observation.Requests = p.resolution.findings(complete, p.conflicts(), p.unanswered())
		observation.URL = render.URL(p.server)
	}
	observation.Notices = append(observation.Notices, p.progress()...)
	return observation, true
}

// writeAll writes the intents in their order. One that depends on what was refused is held back: its output would run
// ahead of what it stands for. The proxy is not made before the backend has been ready.
func (p *pass) writeAll(ctx context.Context, intents []render.Intent, backendReady bool) {
	for _, intent := range intents {
		ref := childRef(intent.Kind, p.key.Namespace, intent.Name)
		if ref.Kind == managers.Deployment && p.object(ref) == nil && !backendReady {
			// A runner that starts before its backend is ready exits at once. An event of the StatefulSet, or of
			// its pod, brings us back here.
			p.made = true
			continue
		}
		if managers.CountsReplicas(intent.Writer) {
			continue
		}
		if dependency, unmet := p.unmet(intent); unmet {
			klog.FromContext(ctx).V(4).Info("Held back", "writer", intent.Writer, "object", ref.String(), "dependsOn", dependency.String())
			p.held = append(p.held, heldBack{ref, dependency})
			p.unwritten.Insert(ref)
			continue
		}
		render.PinConfigs(intent, p.configUID)
		if out := p.write(ctx, intent.Writer, apply.Request{
			Object: ref, Config: intent.Config, Unset: p.stillSet(intent, ref), Preserve: intent.Preserve(),
		}); out.Err != nil {
			p.unwritten.Insert(ref)
		}
	}
}

// scale writes the number of pods of one workload.
func (p *pass) scale(ctx context.Context, workload *inventory.Child, result *render.Result) {
	ref := workload.Ref(p.key.Namespace, p.key.Name)
	in := scaling{view: p.view, workload: workload, result: result, wait: p.capBackoff.left(ref)}
	scaled := in.decide()
	p.wakeAfter(scaled.wait)
	if scaled.request != nil {
		out := p.write(ctx, workload.Replicas, *scaled.request)
		if !out.Wrote() {
			return
		}
		if scaled.caps && out.Err == nil {
			p.capBackoff.begin(ref)
		}
	}
	p.capped = append(p.capped, scaled.told...)
}

// stillSet returns which of the fields that an intent unsets may be set. They are those of a rolling update, of which the cache
// keeps enough to tell; the object would have to be read otherwise.
func (p *pass) stillSet(intent render.Intent, ref apply.ObjectRef) []string {
	if set, ok := p.object(ref).(*appsv1.StatefulSet); ok && set.Spec.UpdateStrategy.RollingUpdate == nil {
		return nil
	}
	return intent.Unset
}

// report writes the status, if it differs, and tells what is new in it.
func (p *pass) report(ctx context.Context, observation status.Observation) {
	if slices.ContainsFunc(p.refused, namespaceEnds) {
		return // Everything goes, one after the other. None of that is news.
	}
	observation.Server = p.server
	observation.Deployment = p.deployment()
	observation.StatefulSet = p.statefulSet()
	observation.ProxyPods = p.proxyPods()
	recovery := recoverProxies(p.view, p.proxyRecovery.of(p.key))
	p.proxyRecovery.replace(p.key, recovery.failed)
	p.deletePods(ctx, recovery.doomed)
	observation.Recovering = recovery.recovering
	if !p.followRollouts(ctx, &observation) {
		return
	}
	observation.Unreported = p.unreported.of(p.key)
	observation.Notices = append(observation.Notices, unsharedSessions(observation)...)
	p.reporting = true
	next := p.compose(ctx, observation)
	out := p.write(ctx, managers.Status, apply.Request{Object: serverRef(p.key), Config: status.Intent(p.server, next)})
	p.unreported.note(p.key, out.Err, next.Conditions)
	if out.Err == nil && out.Action != apply.ActionNone {
		p.recordEvents(status.NewEvents(p.server.Status, stored(out, next)))
	}
}

// namespaceEnds tells whether a write was refused because its namespace is being deleted.
func namespaceEnds(refusal error) bool {
	return apierrors.HasStatusCause(refusal, corev1.NamespaceTerminatingCause)
}

func serverRef(key cache.ObjectName) apply.ObjectRef {
	return childRef(managers.MCPServer, key.Namespace, key.Name)
}
