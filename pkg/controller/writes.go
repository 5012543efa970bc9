// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/status"
)

// write brings one object in line with one intent, unless the object is somebody else's. Of the request, the object
// as it is and the source are filled in.
func (p *pass) write(ctx context.Context, manager string, req apply.Request) apply.Outcome {
	ref, live := req.Object, p.object(req.Object)
	if ref.Kind == managers.MCPServer {
		req.Live = live
	} else if found := p.children[ref]; found != nil {
		req.State, req.Load = &found.State, p.clients.reading(ref)
	}
	req.Source = apply.Source{UID: p.server.UID, Generation: p.server.Generation}
	req.SourceCurrent = slices.Contains(p.forged, ref)
	var out apply.Outcome
	if reason := notOurs(p.view, ref); reason != "" {
		out = p.applier.Refuse(ctx, &apply.Refusal{Class: apply.ClassForeign, Writer: manager, Object: ref, Reason: reason}, live)
	} else {
		if ref.Kind != managers.MCPServer {
			if req.Yield == nil {
				req.Yield = request.Shared(manager, live, req.Config)
			}
			p.resolution.complete(&req)
		}
		if p.inheritFromToolHive(manager, &req) {
			return apply.Outcome{Writer: manager, Object: ref, Action: apply.ActionNone, Live: live}
		}
		if manager == managers.Status {
			req.Aside = p.aside(ctx, req)
		}
		out = p.applier.Sync(ctx, p.clients.writers[writerKey{manager, ref.Kind}], req)
	}
	discovered, wake := p.discover(ctx, out)
	p.discovered = p.discovered || discovered
	p.wakeAfter(wake)
	p.recordOutcome(out)
	return out
}

// notOurs says why an object is not to be written; it is empty when it may be.
func notOurs(v *view, ref apply.ObjectRef) string {
	live := v.object(ref)
	if live == nil || ref.Kind == managers.MCPServer {
		return ""
	}
	switch verdict := v.whose(ref, live); {
	case !verdict.Mine:
		return verdict.Explain(ref, v.around.serves(cache.NewObjectName(v.key.Namespace, verdict.Other)))
	case v.children[ref].spoilt && live.GetDeletionTimestamp() == nil:
		return notWhatItsNameTells(ref)
	}
	return ""
}

func (p *pass) delete(ctx context.Context, ref apply.ObjectRef, live metav1.Object) {
	p.recordOutcome(p.applier.Delete(ctx, ref, live, p.clients.deletion(ref)))
}

func (p *pass) deletePods(ctx context.Context, pods []*corev1.Pod) {
	for _, pod := range pods {
		p.delete(ctx, childRef(podKind, pod.Namespace, pod.Name), pod)
	}
}

// recordOutcome stores the object that a write has left and its error, and raises the retry level.
func (p *pass) recordOutcome(out apply.Outcome) {
	if server, ok := out.Live.(*v1beta1.MCPServer); ok && out.Wrote() {
		p.written = server
	} else if out.Wrote() {
		now := p.caches.reducer.reduce(out.Object, out.Live, p.children[out.Object])
		p.children[out.Object] = now
		p.wakeAfter(p.keep(out.Object, now))
	}
	p.made = p.made || out.Action == apply.ActionCreated
	p.resolution.note(out)
	if p.resolution.begun {
		p.takes.note(p.key, p.resolution.record.Request, out)
	}
	p.recordEvents(claimEvents(p.view, out))
	p.wakeAfter(out.RetryAfter)
	if out.Err != nil {
		p.refused = append(p.refused, out.Err)
	}
}

// wakeAfter makes the MCPServer be looked at again after a wait, if there is one.
func (p *pass) wakeAfter(wait time.Duration) { p.wake = sooner(p.wake, wait) }

func (p *pass) recordEvents(news []status.Event) {
	if p.config.Recorder == nil {
		return
	}
	for _, event := range news {
		p.config.Recorder.Eventf(p.server, nil, event.Type, event.Reason, event.Action, "%s", event.Note)
	}
}
