// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/shell"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/takeover"
	"github.com/freehold-dev/freehold/pkg/turns"
)

const leftAsItIs = "ToolHive manages this MCPServer, and Freehold leaves it as it is"

// resumeTakeovers gives the takeovers of a scope that were begun their slots, before others may begin.
func resumeTakeovers(c *process, s *observed.Scope) {
	for name := range observed.NamesIn(s.ServerStore) {
		if server := c.caches.Server(name); server != nil && takeover.Progress(server) == v1beta1.TakeoverUnderWay {
			c.takeovers.Hold(name, takeoversOf(name), turns.Progress{Generation: -1})
		}
	}
}

// takeoversOf returns the queue for the takeovers of a namespace.
func takeoversOf(server cache.ObjectName) turns.Queue {
	return turns.Queue{Namespace: server.Namespace}
}

// admission is whether a pass may go on with an MCPServer.
type admission int

const (
	// leftAlone means that ToolHive keeps what it has made.
	leftAlone admission = iota
	// queued waits for its turn.
	queued
	// needsTurn may be taken over as soon as it has a slot.
	needsTurn
	// takesOver means that the pass goes on, with a takeover.
	takesOver
	// goesOn has nothing to take over.
	goesOn
)

// admit decides whether the pass may go on. If it must leave alone what ToolHive has made, a condition says why, unless
// takeovers are off.
func (t *takeoverState) admit(mode TakeoverMode) (a admission, reason, message string) {
	switch {
	case t.untaken == 0 && takeover.Progress(t.Server) != v1beta1.TakeoverUnderWay && (t.begun || !takeover.Held(t.Server, "")):
		return goesOn, "", "" // What is under way goes on to its end: there may be more to take than informers show.
	case t.begun:
		// A takeover that was begun goes on, whatever the mode is by now, and with or without a slot: half a takeover is worse than
		// either end.
		return takesOver, "", ""
	case mode == TakeoverOff:
		// The only report is one that replaces a condition that is not true any more.
		if before := takenOver(t.Server); before != nil && before.Reason != v1beta1.ReasonTakeoverOff {
			return leftAlone, v1beta1.ReasonTakeoverOff, leftAsItIs + ": the operator runs with --takeover=off"
		}
		return leftAlone, "", ""
	case mode == TakeoverManual && t.Server.Annotations[v1beta1.AnnotationTakeover] != v1beta1.TakeoverApproved:
		return leftAlone, v1beta1.ReasonNeedsApproval, fmt.Sprintf("%s. To let Freehold take it over: %s", leftAsItIs, approval(t.Key))
	}
	return needsTurn, "", ""
}

// askForTurn asks for a slot for an MCPServer that can be taken over. The wait is reported once, in words that stay true: others
// come and go, and to count them anew would cost a write each time for each that waits.
func askForTurn(v *observed.Snapshot, do *executor) (a admission, reason, message string) {
	input, known := do.inputs()
	if !known {
		return leftAlone, "", ""
	}
	result, err := render.Render(input, do.config.Options)
	if err == nil && len(result.Held) > 0 {
		err = &render.InvalidError{Problems: result.Held}
	}
	if err != nil {
		return leftAlone, v1beta1.ReasonCannotTakeOver, fmt.Sprintf("%s: %v", leftAsItIs, err)
	}
	wait, acquired := do.takeovers.Acquire(v.Key, takeoversOf(v.Key))
	if acquired {
		return takesOver, "", ""
	}
	before := takenOver(v.Server)
	if before != nil && before.Reason == v1beta1.ReasonWaiting && before.ObservedGeneration == v.Server.Generation {
		return queued, "", ""
	}
	return queued, v1beta1.ReasonWaiting, fmt.Sprintf("%s until its turn comes. It is one of many in its namespace, and --takeovers-at-once is %d. "+
		"%s If those do not get on, their condition TakenOver says why: resolve that, or restart the operator with a higher --takeovers-at-once.",
		leftAsItIs, wait.Limit, wait)
}

// beginTakeover reports whether the pass may go on, and says why not in the one condition of an MCPServer that is left as it is.
func beginTakeover(p *pass, do *executor) bool {
	p.takeover.survey()
	admission, reason, message := p.takeover.admit(do.config.Takeover)
	if admission == needsTurn {
		admission, reason, message = askForTurn(p.Snapshot, do)
	}
	p.takeover.underWay, p.takeover.queued = admission == takesOver, admission == queued
	if admission == takesOver && !recordTakeover(p, do, v1beta1.TakeoverUnderWay) && !p.takeover.begun {
		admission = leftAlone // Nothing is taken before that is recorded.
		if found, delays := refusals(p.Snapshot, p.refused); len(found)+len(delays) > 0 {
			reason, message = v1beta1.ReasonCannotTakeOver, fmt.Sprintf("%s: %s", leftAsItIs, append(found, delays...)[0].Message)
		}
	}
	if reason != "" {
		finding := status.Finding{Condition: v1beta1.ConditionTakenOver, Status: metav1.ConditionFalse, Reason: reason, Message: message}
		config, conditions, events := status.Notice(p.Server, finding, p.state.pending, do.config.Clock.Now())
		out := do.write(managers.Status, apply.Request{Object: observed.ServerRef(p.Key), Config: config})
		p.state.notePending(out.Err, conditions)
		if out.Err == nil && out.Action != apply.ActionNone {
			do.events(events)
		}
	}
	if admission == takesOver && !do.reveal(p.state.places(p.Key)...) {
		if !slices.ContainsFunc(p.refused, apply.IsReported) {
			return false // The refusal should be over in a moment, or the next pass knows more.
		}
		p.blocked = true // What ToolHive has made without labels would not be taken over. The condition says what cannot be read.
	}
	return admission == goesOn || admission == takesOver
}

// endTakeover records that a takeover is done, and reports how far one is. A child that was refused without an answer may exist.
func endTakeover(p *pass, do *executor) {
	if !p.blocked && p.takeover.isComplete() && !slices.ContainsFunc(p.refused, isUnanswered) {
		recordTakeover(p, do, v1beta1.TakeoverDone)
	}
	p.observation.Notices = append(p.observation.Notices, p.takeover.progress()...)
}

// recordTakeover reports whether the MCPServer records that its takeover has come so far, which it writes if need be.
func recordTakeover(p *pass, do *executor, progress v1beta1.TakeoverProgress) (recorded bool) {
	if known := takeover.Progress(p.Server); known == progress || known == v1beta1.TakeoverDone {
		return true
	}
	config := toolhivev1beta1ac.MCPServer(p.Key.Name, p.Key.Namespace).
		WithAnnotations(map[string]string{v1beta1.AnnotationTakeoverProgress: string(progress)})
	return do.write(managers.Takeover, apply.Request{Object: observed.ServerRef(p.Key), Config: config}).Err == nil
}

// slotUse says what happens to an MCPServer's slot, or to its place among those that wait for one, at the end of a pass.
type slotUse int

const (
	slotKept slotUse = iota
	slotReleased
	slotSuspended
	slotHeld
)

// useOfSlot decides what happens to the slot after writes with these refusals.
func (t *takeoverState) useOfSlot(refused []error) slotUse {
	switch {
	case t.queued:
		return slotKept
	case !t.underWay, len(refused) == 0 && t.isComplete():
		return slotReleased
	case t.unrendered, slices.ContainsFunc(refused, endures):
		return slotSuspended
	}
	return slotHeld
}

// progressOfTakeover returns how far the takeover has come.
func progressOfTakeover(v *observed.Snapshot) turns.Progress {
	outdated := countToolHivesProxies(v)
	if set := v.StatefulSet(); set != nil {
		outdated += rollout.Outdated(set, v.BackendPods())
	}
	return turns.Progress{Generation: v.Server.Generation, Untaken: countUntaken(v), Outdated: outdated}
}

// leaveSlot ends a pass: the MCPServer keeps its slot, or its place among those that wait for one, or it makes room for others. It gives
// the slot up if nothing happens for too long.
func leaveSlot(p *pass, do *executor) {
	switch p.takeover.useOfSlot(p.refused) {
	case slotReleased:
		do.takeovers.Release(p.Key)
	case slotSuspended:
		do.takeovers.Suspend(p.Key, takeoversOf(p.Key))
	case slotHeld:
		do.wakeIn(do.takeovers.Hold(p.Key, takeoversOf(p.Key), progressOfTakeover(p.Snapshot)))
	case slotKept:
	}
}

// approval returns the command that lets Freehold take the MCPServer over.
func approval(key cache.ObjectName) string {
	return shell.Command("kubectl", "annotate", "-n", key.Namespace, observed.ServerRef(key).String(),
		"--overwrite", v1beta1.AnnotationTakeover+"="+v1beta1.TakeoverApproved)
}
