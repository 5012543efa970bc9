// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/printable"
)

// Compute returns the status that follows from an observation: all fields and conditions that Freehold's
// status writer claims, and no others. Conditions keep the time of their last transition from the previous
// status.
func Compute(o Observation, now time.Time) v1beta1.MCPServerStatus {
	pods := count(o.ProxyPods)
	next := v1beta1.MCPServerStatus{ObservedGeneration: o.Server.Generation}
	inUse := o.Hashes
	if o.HashesUnused {
		inUse = nil
	}
	setHashes(&next, o.Server, inUse)
	brief := (&view{o, pods, now}).inBrief(&next)
	next.ReadyReplicas = readyReplicas(o, pods)
	next.Conditions = conditionsOf(o, brief, now)
	return next
}

// readyReplicas returns how many of the wanted proxies are ready. A rollout has one more for a moment; to report it
// would cost two writes and say nothing. A pod counts once its Deployment counts it too, by when it serves.
func readyReplicas(o Observation, pods tally) int32 {
	d := o.Deployment
	if d == nil {
		return pods.running
	}
	ready := min(pods.running, d.Status.ReadyReplicas)
	if d.Replicas != nil {
		ready = min(ready, *d.Replicas)
	}
	return ready
}

// setHashes records states of the referenced objects, and reports whether there is another one than before. One that is not given keeps
// the hash that it had.
func setHashes(next *v1beta1.MCPServerStatus, server *v1beta1.MCPServer, hashes configs.Hashes) (changed bool) {
	for ref := range configs.Hashed() {
		before, now := *ref.Hash(&server.Status), ""
		if _, referred := ref.Named(&server.Spec); referred {
			now = cmp.Or(hashes[ref.Field], before)
		}
		*ref.Hash(next) = now
		changed = changed || now != before
	}
	return changed
}

// conditionsOf returns all conditions. brief are those of view.inBrief.
func conditionsOf(o Observation, brief []Finding, now time.Time) []metav1.Condition {
	set := conditionSet{
		previous: o.Server.Status.Conditions, unreported: o.Unreported, generation: o.Server.Generation, now: now,
	}
	for _, f := range brief {
		set.add(f)
	}
	for _, f := range specFindings(o) {
		set.add(f)
	}
	if len(o.Invalid) > 0 {
		// Nothing was tried, so the results of earlier writes still stand.
		set.keep(v1beta1.ConditionFieldsOwned)
		set.keep(v1beta1.ConditionApplied)
		set.keep(v1beta1.ConditionFieldsTaken)
		set.keep(v1beta1.ConditionFieldsYielded)
	} else {
		owned := Finding{
			v1beta1.ConditionFieldsOwned, metav1.ConditionTrue, v1beta1.ReasonNoConflict,
			"Freehold owns every field that it sets",
		}
		set.clear(o.Unsettled || o.Doubtful, owned) // Conflicts that were reported may stand without being known now.
		set.clear(o.Unsettled, Finding{v1beta1.ConditionApplied, metav1.ConditionTrue, v1beta1.ReasonApplied, o.written()})
	}
	// What a user has to change is listed as a whole. Refusals have one cause as a rule, and each names commands.
	set.override(slices.Concat(o.Notices, unshared(o)), joined)
	set.override(unenforced(o), counted)
	set.override(o.Requests, counted)
	set.override(slices.Concat(o.Refusals, o.Contested, o.Delays), counted)
	set.override(o.wrong(), joined)
	return set.sorted()
}

// Conditions returns the conditions of findings, in their order. One whose status is as before keeps its transition time, also where
// unreported has it: those are conditions that were computed before and have not been written.
func Conditions(previous, unreported []metav1.Condition, generation int64, now time.Time, findings ...Finding) []metav1.Condition {
	set := conditionSet{previous: previous, unreported: unreported, generation: generation, now: now}
	for _, f := range findings {
		set.add(f)
	}
	return set.collected
}

// conditionSet collects conditions of distinct types.
type conditionSet struct {
	previous   []metav1.Condition
	unreported []metav1.Condition
	generation int64
	now        time.Time
	collected  []metav1.Condition
}

// add sets a condition, whose message may quote what users wrote. Its transition time is that of the previous status unless the
// status differs.
func (s *conditionSet) add(f Finding) {
	condition := metav1.Condition{
		Type: f.Condition, Status: f.Status, Reason: f.Reason, Message: Worded(readable(f.Message)),
		ObservedGeneration: s.generation, LastTransitionTime: metav1.NewTime(s.now.Truncate(time.Second)),
	}
	for _, known := range [][]metav1.Condition{s.previous, s.unreported} {
		// One that another client has given a time that cannot be read has none.
		if before := meta.FindStatusCondition(known, f.Condition); before != nil && before.Status == f.Status && !before.LastTransitionTime.IsZero() {
			condition.LastTransitionTime = before.LastTransitionTime
			break
		}
	}
	for i := range s.collected {
		if s.collected[i].Type == f.Condition {
			s.collected[i] = condition
			return
		}
	}
	s.collected = append(s.collected, condition)
}

// override sets conditions over what was added before. Several findings for one type become one condition: the first one decides,
// and join makes one message of all.
func (s *conditionSet) override(findings []Finding, join func(condition string, messages []string) string) {
	first := map[string]Finding{}
	messages := map[string][]string{}
	var order []string
	for _, f := range findings {
		if _, seen := first[f.Condition]; !seen {
			first[f.Condition] = f
			order = append(order, f.Condition)
		}
		messages[f.Condition] = append(messages[f.Condition], f.Message)
	}
	for _, conditionType := range order {
		f := first[conditionType]
		f.Message = join(conditionType, messages[conditionType])
		s.add(f)
	}
}

// others is how a message ends that counts others.
const others = " (+%d more)"

// counted returns the first message, and counts the others.
func counted(_ string, messages []string) string { return withMore(messages[0], len(messages)-1) }

func withMore(message string, n int) string {
	if n == 0 {
		return message
	}
	more := fmt.Sprintf(others, n)
	return printable.Bound(message, MaxMessage-len(more)) + more
}

// joined returns the messages for which there is room, at least one, and counts the others.
func joined(_ string, messages []string) string {
	const separator = "; "
	text := messages[0]
	for i, message := range messages[1:] {
		left := len(messages) - 1 - i
		if len(text)+len(separator)+len(message)+len(fmt.Sprintf(others, left)) > MaxMessage {
			return withMore(text, left)
		}
		text = strings.TrimSuffix(text, ".") + separator + message
	}
	return text
}

// clear sets a condition to its good state; but while not everything is settled it stays as it was, its observed
// generation included.
func (s *conditionSet) clear(unsettled bool, good Finding) {
	switch {
	case !unsettled:
		s.add(good)
	case meta.FindStatusCondition(s.previous, good.Condition) != nil:
		s.keep(good.Condition)
	default:
		s.add(Finding{good.Condition, metav1.ConditionUnknown, v1beta1.ReasonUnsettled, "Some writes have not been answered yet"})
	}
}

// keep carries a previous condition on.
func (s *conditionSet) keep(conditionType string) {
	if before := meta.FindStatusCondition(s.previous, conditionType); before != nil {
		s.collected = append(s.collected, *before)
	}
}
