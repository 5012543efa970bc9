// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/shell"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

const leftAsItIs = "ToolHive has made this MCPServer, and it is left as it is"

// resumeTakeovers gives the takeovers that were begun their slots, before others may begin.
func (c *Controller) resumeTakeovers() {
	for _, s := range c.caches.byNamespace {
		for _, key := range s.serverStore.GetStore().ListKeys() {
			name, err := cache.ParseObjectName(key)
			if err != nil {
				continue
			}
			if server := c.caches.server(name); server != nil && isTakingOver(server) {
				c.takeovers.hold(name, takeoverProgress{generation: -1})
			}
		}
	}
}

// isTakingOver reports whether a takeover was begun and not ended.
func isTakingOver(server *v1beta1.MCPServer) bool {
	condition := takenOver(server)
	return condition != nil && condition.Reason == v1beta1.ReasonTakingOver
}

func takenOver(server *v1beta1.MCPServer) *metav1.Condition {
	return meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionTakenOver)
}

// mayReconcile reports whether the pass may go on. If it must leave alone what ToolHive has made, a condition says why,
// unless takeovers are off.
func (p *pass) mayReconcile(ctx context.Context) bool {
	if p.survey() == 0 && !p.isUnfinished() && (p.takeover.begun || !takeover.Held(p.server, "")) {
		return true
	}
	switch {
	case p.takeover.begun:
		// Whatever the mode is by now, and whether it has a slot or not: half of it would be the worst.
		return p.goOn(ctx)
	case p.config.Takeover == TakeoverOff:
		// Nothing is told but what takes the place of something that is not true any more.
		if before := takenOver(p.server); before != nil && before.Reason != v1beta1.ReasonTakeoverOff {
			p.tellTakeover(ctx, v1beta1.ReasonTakeoverOff, leftAsItIs+": the operator runs with --takeover=off")
		}
		return false
	case p.config.Takeover == TakeoverManual && p.server.Annotations[v1beta1.AnnotationTakeover] != v1beta1.TakeoverApproved:
		p.tellTakeover(ctx, v1beta1.ReasonNeedsApproval, fmt.Sprintf("%s. To let Freehold take it over: %s", leftAsItIs, approval(p.key)))
		return false
	}
	input, known := p.input(ctx)
	if !known {
		return false
	}
	if _, err := render.Render(input, p.config.Options); err != nil {
		p.tellTakeover(ctx, v1beta1.ReasonCannotTakeOver, fmt.Sprintf("%s: %v", leftAsItIs, err))
		return false
	}
	turn, acquired := p.takeovers.acquire(p.key)
	if !acquired {
		p.takeover.queued = true
		p.tellTurn(ctx, turn)
		return false
	}
	return p.goOn(ctx)
}

// isUnfinished reports whether a takeover was begun of which the status does not tell the end: there may be more to take than
// informers show.
func (p *pass) isUnfinished() bool {
	return p.takeover.begun && !p.wasTakenOver() &&
		(isTakingOver(p.server) || p.untold() || takeover.Held(p.server, "status") && !p.takeover.intruded)
}

// goOn goes on with a takeover, of what no informer shows as well.
func (p *pass) goOn(ctx context.Context) bool {
	p.takeover.underWay = true
	if err := p.revealAll(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read what ToolHive may have made without labels")
		p.retryAs(retryBackoff)
		return false
	}
	p.survey()
	return true
}

// releaseTakeoverSlot ends a pass: the MCPServer keeps its slot, or its place among those that wait for one, or it makes
// room for others.
func (p *pass) releaseTakeoverSlot() {
	switch {
	case p.takeover.queued:
	case !p.takeover.underWay, p.isTakenOver():
		p.takeovers.release(p.key)
	case p.takeover.unrendered, slices.ContainsFunc(p.refused, endures):
		p.takeovers.suspend(p.key)
	default:
		if left := p.takeovers.hold(p.key, p.takeoverProgress()); left > 0 {
			p.wakeAfter(left) // to give the slot up, if nothing happens until then
		}
	}
}

// isTakenOver reports whether nothing is left to be taken over.
func (p *pass) isTakenOver() bool {
	return len(p.refused) == 0 && len(p.takeover.waiting) == 0 && !p.takeover.unrendered && !p.anyUntaken()
}

// endures reports whether a refusal does not pass by itself.
func endures(refusal error) bool { return !apply.Policies()[apply.ClassOf(refusal)].Passes }

// takeoverProgress is how far the takeover has come.
func (p *pass) takeoverProgress() takeoverProgress {
	progress := takeoverProgress{generation: p.server.Generation}
	for _, ref := range p.refs {
		if p.untaken(ref) {
			progress.untaken++
		}
	}
	progress.outdated = len(p.toolHivesProxies())
	if set := p.statefulSet(); set != nil {
		progress.outdated += rollout.Outdated(set, p.backendPods())
	}
	return progress
}

// approval is the command that lets Freehold take the MCPServer over.
func approval(key cache.ObjectName) string {
	return shell.Command("kubectl", "annotate", "-n", key.Namespace, serverRef(key).String(),
		"--overwrite", v1beta1.AnnotationTakeover+"="+v1beta1.TakeoverApproved)
}

// tellTurn tells that the MCPServer waits, and for which others. It tells so once, in words that stay true: others come and
// go, and to count them anew would cost a write each time for each that waits.
func (p *pass) tellTurn(ctx context.Context, turn takeoverTurn) {
	before := takenOver(p.server)
	if before != nil && before.Reason == v1beta1.ReasonWaiting && before.ObservedGeneration == p.server.Generation {
		return
	}
	p.tellTakeover(ctx, v1beta1.ReasonWaiting, leftAsItIs+" until its turn comes. "+turn.String())
}

// namedHolders is how many MCPServers that hold slots are named.
const namedHolders = 3

// String says what there is to wait for, and what to do if that takes too long.
func (t takeoverTurn) String() string {
	holders := "none under way"
	if named := t.active[:min(namedHolders, len(t.active))]; len(named) > 0 {
		holders = strings.Join(named, ", ")
		if more := len(t.active) - len(named); more > 0 {
			holders += fmt.Sprintf(" (+%d more)", more)
		}
		holders += " under way"
	}
	return fmt.Sprintf("It is one of many in its namespace, and --takeovers-at-once is %d. When it began to wait: %s, %d ahead of it "+
		"in the queue. If those do not get on, their condition TakenOver says why: resolve that, or restart the operator with a "+
		"higher --takeovers-at-once.", t.limit, holders, t.ahead)
}

// tellTakeover writes the one condition, and nothing else, to an MCPServer that is left as it is.
func (p *pass) tellTakeover(ctx context.Context, reason, message string) {
	finding := status.Finding{Condition: v1beta1.ConditionTakenOver, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	config, conditions, news := status.Notice(p.server, finding, p.unreported.of(p.key), p.config.Clock.Now())
	out := p.write(ctx, managers.Status, apply.Request{Object: serverRef(p.key), Config: config})
	p.unreported.note(p.key, out.Err, conditions)
	if out.Err == nil && out.Action != apply.ActionNone {
		p.recordEvents(news)
	}
}
