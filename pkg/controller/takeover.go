// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/passtrace"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/takeover"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// takeoverState decides what one pass does about objects that ToolHive has made.
//
// It remembers nothing: an annotation of the MCPServer records that the takeover was begun, or is done. Until it is done, an object
// is ToolHive's as long as a manager of ToolHive has an entry on it and our main writer has none, and one edit of managedFields
// turns the one into the other. So a takeover continues from wherever it was interrupted. If ToolHive writes again to an object
// that has been ours, that is a conflict, and Freehold never takes such an object without being asked. The condition TakenOver
// only reports: a client that may write the status alone neither begins a takeover nor ends one.
type takeoverState struct {
	*observed.Snapshot
	resolution *resolution
	// writers returns all of ours.
	writers func() []fieldmanager.Writer

	// untaken is how many objects were still ToolHive's when the pass began, and begun is set when the takeover was begun before.
	untaken int
	begun   bool
	// intruded is set when ToolHive writes to a child that was taken over.
	intruded bool

	// underWay is set when the pass goes on with a takeover, queued when it waits for its turn instead.
	underWay, queued bool
	// unrendered is set when the spec has become one that nothing can be rendered from.
	unrendered bool
	// replicas are the writers of replicas that have a number to write.
	replicas []string
	// waiting says what the objects that this pass has not taken wait for.
	waiting []string
	// reporting is set while the status is written.
	reporting bool
}

// survey looks at the fields of the MCPServer that ToolHive owns.
func (t *takeoverState) survey() {
	t.untaken = 0
	for ref, live := range t.Existing() {
		switch {
		case len(intruders(t.Snapshot, ref, live)) > 0:
			t.intruded = true
		case isUntaken(t.Snapshot, ref):
			t.untaken++
		}
	}
	t.begun = takeover.Begun(t.Server)
}

// isUntaken reports whether a child is still ToolHive's.
func isUntaken(v *observed.Snapshot, ref apply.ObjectRef) bool {
	live := v.Object(ref)
	return live != nil && takeover.IsDue(v.Server, v.Owned, ref, live) && v.IsOwned(ref, live)
}

// intruders returns the managers of ToolHive that write to a child which was taken over.
func intruders(v *observed.Snapshot, ref apply.ObjectRef, live metav1.Object) []ownership.Owner {
	if !v.IsOwned(ref, live) {
		return nil
	}
	return takeover.Intruders(v.Server, v.Owned, ref, live)
}

// intrusion returns the condition that reports a child to which ToolHive writes after it was taken over, unless a conflict reports it.
// The condition concerns the whole MCPServer: Freehold then leaves ToolHive a part of the status, and does not write every child.
func intrusion(v *observed.Snapshot, refused []error) []status.Finding {
	if slices.ContainsFunc(conflicts(refused), isWithToolHive) {
		return nil
	}
	for ref, live := range v.Existing() {
		if intruders := intruders(v, ref, live); len(intruders) > 0 {
			what := fmt.Sprintf("%s owns fields of %s, which Freehold writes", takeover.Holder(intruders[0]), ref)
			return []status.Finding{{
				Condition: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionFalse,
				Reason: v1beta1.ReasonFieldManagerConflict, Message: stopToolHive(v, what),
			}}
		}
	}
	return nil
}

// isWithToolHive reports whether ToolHive owns a contested field.
func isWithToolHive(conflict *apply.ConflictError) bool {
	return slices.ContainsFunc(conflict.Fields, func(f apply.FieldConflict) bool {
		return slices.ContainsFunc(f.Owners, takeover.FromToolHive)
	})
}

// countUntaken returns how many children are still ToolHive's.
func countUntaken(v *observed.Snapshot) (untaken int) {
	for _, ref := range v.Refs {
		if isUntaken(v, ref) {
			untaken++
		}
	}
	return untaken
}

// waitsFor says what must happen before an object of ToolHive is taken over; it is empty when nothing must. See
// takeover.MomentOf for the order.
func waitsFor(v *observed.Snapshot, ref apply.ObjectRef) string {
	set := v.StatefulSet()
	child := inventory.Named(ref, v.Key.Name)
	if child == nil {
		return ""
	}
	// The gate reports whether our runners leave a StatefulSet alone.
	switch takeover.MomentOf(child, set == nil || takeover.Closed(takeover.Gate(set.Template.Generation))) {
	case takeover.AfterBackend:
		return "the backend to be taken over: its generation gate is open"
	case takeover.AfterProxies:
		if !proxiesReplaced(v) {
			return "the rollout of the proxy"
		}
	case takeover.AfterRole:
		if !proxiesReplaced(v) || isUntaken(v, inventory.RunnerRole.Ref(ref.Namespace, v.Key.Name)) {
			return "the Role to be taken over"
		}
	case takeover.AtOnce:
		if child != inventory.Proxy || set == nil || !managers.Owns(set, managers.Backend, "") {
			return ""
		}
		// Pods that wait for permission to be replaced are no reason to wait as well: the StatefulSet's template closes the gate, not its pods.
		state, _ := rollout.StatefulSet(set, v.BackendPods(), v.Driver(), v.Now)
		if state.Phase != rollout.Waiting && (!state.Serves() || set.Status.ReadyReplicas < set.Status.Replicas) {
			return "the rollout of the backend"
		}
	}
	return ""
}

// proxiesReplaced reports whether no proxy of ToolHive is left, not even one that is on its way out.
func proxiesReplaced(v *observed.Snapshot) bool {
	deployment := v.Deployment()
	if deployment == nil {
		return true
	}
	// Only ToolHive's pods record their generation. What was taken over may still be as it was, if another field manager contests it.
	if deployment.Template.Generation != "" {
		return false
	}
	// A pod may outlive its ReplicaSet, and its runner writes as long as it lives.
	return countToolHivesProxies(v) == 0
}

// countToolHivesProxies returns how many pods of proxies were made from ToolHive's template: only that records its generation.
func countToolHivesProxies(v *observed.Snapshot) (count int) {
	for _, pods := range [][]*workload.Pod{v.ProxyPods(), v.Ask.UnplacedProxyPods(v.Key)} {
		for _, pod := range pods {
			if pod.Generation != "" {
				count++
			}
		}
	}
	return count
}

// postpone notes what a child that does not exist yet waits for. A takeover ends only once the child is created: until then ToolHive may
// have made the child, and an API server that lags has not shown it.
func (t *takeoverState) postpone(ref apply.ObjectRef, what string) {
	if t.underWay && t.Object(ref) == nil {
		t.noteWait(ref, what)
	}
}

func (t *takeoverState) noteWait(ref apply.ObjectRef, what string) {
	t.waiting = append(t.waiting, fmt.Sprintf("%s waits for %s", ref, what))
}

// inherit adds to a request what the writer inherits from ToolHive. held means that the object is not to be taken yet.
func (t *takeoverState) inherit(manager string, req *apply.Request) (held bool) {
	ref := req.Object
	live := t.Object(ref)
	switch {
	case live == nil:
		return false
	case ref.Kind == managers.MCPServer:
		t.inheritServer(manager, req)
	case isUntaken(t.Snapshot, ref):
		if why := waitsFor(t.Snapshot, ref); why != "" {
			t.noteWait(ref, why)
			return true
		}
		if manager == takeover.MainWriter(ref) {
			req.Inherit = t.inheritance(ref, func(owner ownership.Owner) bool {
				return takeover.FromToolHive(owner) || takeover.FromPlugin(owner)
			})
		}
	case manager == takeover.MainWriter(ref) && takeover.HeldByPlugin(live):
		// A handback was interrupted, and the operator is to go on instead.
		req.Inherit = t.inheritance(ref, takeover.FromPlugin)
	case takeover.Held(live, "") && manager == takeover.MainWriter(ref):
		// ToolHive writes again. A request to take that names its manager removes all claims of that manager, also those to equal values.
		takes := func(owner ownership.Owner) bool {
			return managers.IsToolHive(owner.Manager) && t.resolution.takesFrom(ref, owner)
		}
		if slices.ContainsFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			return takes(ownership.OwnerOf(&e))
		}) {
			req.Inherit = t.inheritance(ref, takes)
		}
	case t.intruded && (ref.Kind == managers.ServiceAccount || ref.Kind == managers.RoleBinding):
		// ToolHive's operator writes the object again whenever it reconciles the MCPServer, without what others have added. To answer
		// each time would go on for as long as that operator runs. The API server also refuses a binding to the Role that ToolHive
		// has written.
		return true
	}
	return false
}

// inheritServer adds to a request about the MCPServer itself. One operator is to write its status: where ToolHive's operator still
// works on the children, Freehold leaves ToolHive the fields that ToolHive owns, and only adds the conditions that report this.
func (t *takeoverState) inheritServer(manager string, req *apply.Request) {
	subresource := ""
	if manager == managers.Status {
		subresource = "status"
	}
	switch {
	case !takeover.Held(req.Live, subresource):
	case t.intruded && manager == managers.Status:
		req.Yield = heldByToolHive(req.Live)
	case manager == managers.Finalizer || t.reporting:
		req.Inherit = t.inheritance(req.Object, func(owner ownership.Owner) bool {
			return takeover.FromToolHive(owner) && owner.Subresource == subresource
		})
	}
}

// inheritance returns the rule by which claims on an object pass to our writers.
func (t *takeoverState) inheritance(ref apply.ObjectRef, from func(owner ownership.Owner) bool) *apply.Inheritance {
	return &apply.Inheritance{From: from, Heirs: takeover.Heirs(t.writers(), ref, t.replicas...)}
}

// heldByToolHive returns a function that reports which fields of a status ToolHive owns. A condition is owned as a
// whole, whatever ToolHive has changed of it.
func heldByToolHive(server metav1.Object) func(path fieldpath.Path) bool {
	held := &fieldpath.Set{}
	for _, entry := range server.GetManagedFields() {
		if !managers.IsToolHive(entry.Manager) {
			continue
		}
		set, err := ownership.Fields(&entry)
		if err != nil {
			continue
		}
		set.Iterate(func(path fieldpath.Path) {
			if takeover.IsCondition(path) {
				path = path[:3]
			}
			held.Insert(path.Copy())
		})
	}
	return func(path fieldpath.Path) bool {
		if takeover.IsCondition(path) {
			path = path[:3]
		}
		return held.Has(path)
	}
}

// isComplete reports whether a takeover that is under way has nothing left to do.
func (t *takeoverState) isComplete() bool {
	return t.underWay && !t.unrendered && len(t.waiting) == 0 && countUntaken(t.Snapshot) == 0
}

// progress returns the condition about the takeover; none for an MCPServer that Freehold has made.
func (t *takeoverState) progress() []status.Finding {
	f := status.Finding{Condition: v1beta1.ConditionTakenOver, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonTakingOver}
	switch {
	case len(t.waiting) > 0:
		f.Message = t.waiting[0]
		if more := len(t.waiting) - 1; more > 0 {
			f.Message += fmt.Sprintf(" (+%d more objects)", more)
		}
	case countUntaken(t.Snapshot) > 0:
		f.Message = "Freehold has yet to take over some of ToolHive's objects"
	case takeover.Progress(t.Object(observed.ServerRef(t.Key))) == v1beta1.TakeoverDone, !t.underWay && t.isReportedByPredecessor():
		f.Status, f.Reason, f.Message = metav1.ConditionTrue, v1beta1.ReasonTakenOver, "Freehold has taken over every object of ToolHive's"
	case t.underWay:
		f.Message = "Freehold has yet to record that the takeover is done; another condition says what it waits for"
	default:
		return nil
	}
	return []status.Finding{f}
}

// isReportedByPredecessor reports whether a version of Freehold that recorded no progress has reported a takeover, so that the report stays.
// Nothing else is decided by the condition, so there is nothing to gain by forging it: what Freehold does about the MCPServer and its
// children does not depend on it; a record, and an object that is yet to be taken, go before it; and where managedFields do not
// show a takeover, it does not count.
func (t *takeoverState) isReportedByPredecessor() bool {
	before := takenOver(t.Server)
	return before != nil && (before.Reason == v1beta1.ReasonTakingOver || before.Reason == v1beta1.ReasonTakenOver) && takeover.WasTaken(t.Server, t.Owned)
}

// isIdle reports whether there is nothing of ToolHive left to deal with.
func (t *takeoverState) isIdle() bool {
	return t.untaken == 0 && !t.intruded && !t.underWay && !t.queued && len(t.waiting) == 0
}

func takenOver(server *v1beta1.MCPServer) *metav1.Condition {
	return meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionTakenOver)
}

// outcome returns that of a pass in which nothing was refused.
func (t *takeoverState) outcome() string {
	switch {
	case t.unrendered:
		return passtrace.OutcomeInvalid
	case t.Server.DeletionTimestamp != nil:
		return passtrace.OutcomeDeleting
	case t.reporting:
		return passtrace.OutcomeDone
	}
	return passtrace.OutcomeWaiting
}
