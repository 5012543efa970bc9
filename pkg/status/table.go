// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/rollout"
)

// Row is a line of the table that decides what an MCPServer says of itself in brief: its phase, its message, and its conditions Ready,
// Reconciling and Stalled. The first row that applies decides.
type Row struct {
	// When says when the row applies, in the words of the docs.
	When string
	// Phase decides which condition is True: Ready of Ready, Reconciling of Pending, and Stalled of Failed. An MCPServer that is Stopped
	// has no condition Ready: it serves nothing, and has nothing to wait for either, which tools such as Helm and Flux take for done.
	Phase v1beta1.MCPServerPhase
	// Reason of the condition Ready; empty for the reason of the cause.
	Reason string
	// Message of the phase and of the condition Ready, to which a detail may be added. It is ToolHive's, word for word, where users may
	// compare it.
	Message string

	// applies returns why the row applies; nil when it does not.
	applies func(o *view) *cause
}

// view is an observation at a time, and how the proxy's pods are doing.
type view struct {
	Observation

	pods tally
	now  time.Time
}

// cause is why a row applies.
type cause struct {
	// detail is added to the row's message.
	detail string
	// reason and message are those of the condition that is True because of it, Reconciling or Stalled. They are empty while Freehold and
	// Kubernetes are at work.
	reason, message string
}

// table has the rows in their order.
var table = []Row{
	{
		"a referenced object does not exist yet; Freehold waits ten seconds",
		v1beta1.PhasePending, v1beta1.ReasonNotReady, "MCP server is waiting for what it refers to: ", (*view).awaitsReference,
	},
	{
		"the spec or a referenced object cannot be used",
		v1beta1.PhaseFailed, v1beta1.ReasonNotReady, "Failed to build configuration: ", (*view).hasWrongSpec,
	},
	{
		"a write is refused, or admission changes what a pod's policy, process or address depends on",
		v1beta1.PhaseFailed, v1beta1.ReasonNotReady, "Failed to apply the MCP server's objects: ", (*view).isUnappliable,
	},
	{"a conflict, or a child's name is taken", v1beta1.PhaseFailed, "", "Some of the desired state is not written", (*view).isContested},
	{
		"the proxy or the backend has 0 replicas, and a write has no answer yet",
		v1beta1.PhasePending, v1beta1.ReasonNotApplied, "Some of the desired state is not written yet", (*view).isUnwrittenAtZero,
	},
	{"the proxy or the backend has 0 replicas", v1beta1.PhaseStopped, "", "MCP server is stopped (scaled to zero)", (*view).isStopped},
	{
		"a pod fails, and waiting does not help",
		v1beta1.PhaseFailed, v1beta1.ReasonNotReady, "MCP server pod failed: ", (*view).hasFailedPod,
	},
	{
		"Kubernetes refuses to create a pod",
		v1beta1.PhaseFailed, v1beta1.ReasonNotReady, "MCP server pod cannot be created: ", (*view).lacksPod,
	},
	{
		"the URL's Service is an ExternalName, or selects other pods than the proxy's",
		v1beta1.PhaseFailed, v1beta1.ReasonNotReady, "MCP server cannot be reached: ", (*view).isAstray,
	},
	{
		"the proxy exits until its backend serves",
		v1beta1.PhasePending, v1beta1.ReasonNotReady, "MCP server proxy is waiting for its backend: ", (*view).awaitsBackend,
	},
	{
		"first start, or the proxy has no pods",
		v1beta1.PhasePending, v1beta1.ReasonNotReady, "MCP server is being created", (*view).isBeingCreated,
	},
	{"no pod of the proxy is ready yet", v1beta1.PhasePending, v1beta1.ReasonNotReady, "MCP server is starting", (*view).isStarting},
	{
		"all pods of the proxy are being deleted",
		v1beta1.PhasePending, v1beta1.ReasonNotReady, "No healthy pods found", (*view).lacksHealthyPod,
	},
	{
		"the URL's Service is missing",
		v1beta1.PhasePending, v1beta1.ReasonNotReady,
		"MCP server proxy is running; its Service does not exist, is being deleted, or belongs to another owner", (*view).lacksService,
	},
	{
		"the backend's StatefulSet is missing",
		v1beta1.PhasePending, v1beta1.ReasonNotReady, "MCP server proxy is running; recreating missing workload StatefulSet", (*view).lacksBackend,
	},
	{"a write is retried, or waits for its turn", v1beta1.PhasePending, "", "Some of the desired state is not written", (*view).isDelayed},
	{
		"a write has no answer yet",
		v1beta1.PhasePending, v1beta1.ReasonNotApplied, "Some of the desired state is not written yet", (*view).isUnwritten,
	},
	{
		"pods are replaced or start, or wait for you to act",
		v1beta1.PhasePending, v1beta1.ReasonNotServing, "The desired state does not serve yet", (*view).isRollingOut,
	},
	{
		"all that the spec asks for is written and serves",
		v1beta1.PhaseReady, v1beta1.ReasonReady, "MCP server is running", (*view).isRunning,
	},
}

// Table returns the rows.
func Table() []Row { return slices.Clone(table) }

// judge returns the first row that applies, and why it does. The last one always does.
func (o *view) judge() (row *Row, because *cause) {
	for i := range table {
		row = &table[i]
		if because = row.applies(o); because != nil {
			break
		}
	}
	return row, because
}

// inBrief sets the phase, the message and the URL, and returns the conditions that go with them, as the library kstatus reads them, and
// RolledOut. Messages stay the same while nothing new is to be reported: each write costs a request.
func (o *view) inBrief(next *v1beta1.MCPServerStatus) (conditions []Finding) {
	row, because := o.judge()
	next.Phase, next.Message, next.URL = row.Phase, Worded(readable(row.Message+because.detail)), o.url(row.Phase)
	ready := Finding{v1beta1.ConditionReady, metav1.ConditionFalse, cmp.Or(row.Reason, because.reason), next.Message}
	reconciling := Finding{v1beta1.ConditionReconciling, metav1.ConditionFalse, v1beta1.ReasonReconciled, "No change is in progress"}
	stalled := Finding{v1beta1.ConditionStalled, metav1.ConditionFalse, v1beta1.ReasonNotStalled, "Nothing blocks progress"}
	switch row.Phase {
	case v1beta1.PhaseReady:
		ready.Status = metav1.ConditionTrue
	case v1beta1.PhaseFailed:
		stalled.Status, stalled.Reason, stalled.Message = metav1.ConditionTrue, because.reason, because.message
	case v1beta1.PhasePending:
		reconciling.Status, reconciling.Reason, reconciling.Message = metav1.ConditionTrue, because.reason, because.message
		if because.reason == "" {
			reconciling.Reason, reconciling.Message = o.underWay()
		}
	}
	conditions = []Finding{reconciling, stalled, o.rolledOut(row)}
	if row.Phase != v1beta1.PhaseStopped {
		conditions = append(conditions, ready)
	}
	return conditions
}

// rolledOut returns the condition RolledOut. Its message has the image that all ready pods of the backend have, or, as long as a rollout is not
// over, the one that was reported last: pods that come and go are not worth a write each.
func (o *view) rolledOut(row *Row) Finding {
	f := Finding{v1beta1.ConditionRolledOut, metav1.ConditionTrue, v1beta1.ReasonRolledOut, "The backend has not served yet"}
	if before := meta.FindStatusCondition(o.Server.Status.Conditions, f.Condition); before != nil {
		f.Message = before.Message
	}
	creating := row.Phase == v1beta1.PhasePending && (o.firstStart() || len(o.ProxyPods) == 0)
	behind := creating && o.pods.running == 0 // The known pods are behind the status of their Deployment, for a moment.
	if len(o.Images) == 1 && o.Backend.Serves() && o.Proxy.Serves() && !behind {
		f.Message = fmt.Sprintf("The backend last served with image %s", o.Images[0])
	}
	switch {
	case o.serves() && !behind:
		return f
	case o.isToStop():
		f.Reason = v1beta1.ReasonScaledToZero
	case creating:
		f.Reason = v1beta1.ReasonCreating
	default:
		f.Reason = v1beta1.ReasonRollingOut
	}
	f.Status = metav1.ConditionFalse
	return f
}

// grace is how long an object may be missing that the spec refers to and that was never seen, before that counts as a failure: who applies
// both at once may send the MCPServer first.
const grace = 10 * time.Second

// Grace returns for how long the objects that are missing are still waited for; 0 for not. Another status is due then.
func (o Observation) Grace(now time.Time) (left time.Duration) {
	for _, f := range o.wrong() {
		until := grace
		if before := o.told(f.Condition); before != nil && before.Status == metav1.ConditionFalse {
			until -= now.Sub(before.LastTransitionTime.Time)
		} else if before != nil {
			return 0 // It was there.
		}
		if until <= 0 || !isMissing(f) || o.Server.Status.Phase == v1beta1.PhaseFailed {
			return 0
		}
		left = max(left, until)
	}
	return left
}

// told returns a condition as it was reported, or would have been had its write been accepted; nil for neither.
func (o Observation) told(conditionType string) *metav1.Condition {
	return cmp.Or(meta.FindStatusCondition(o.Server.Status.Conditions, conditionType), meta.FindStatusCondition(o.Unreported, conditionType))
}

// isMissing reports whether an object does not exist that the proxy is made from.
func isMissing(f Finding) bool {
	for ref := range configs.Hashed() {
		if f.Condition == ref.Condition && f.Reason == ref.NotFound {
			return true
		}
	}
	return f.Reason == v1beta1.ReasonAuthzConfigMapNotFound
}

func because(is bool) *cause {
	if is {
		return &cause{}
	}
	return nil
}

func (f Finding) cause(detail string) *cause { return &cause{detail, f.Reason, f.Message} }

func (o *view) awaitsReference() *cause {
	if o.Grace(o.now) > 0 {
		return o.wrong()[0].cause(o.wrong()[0].Message)
	}
	return nil
}

func (o *view) hasWrongSpec() *cause {
	if wrong := o.wrong(); len(wrong) > 0 {
		return wrong[0].cause(wrong[0].Message)
	}
	return nil
}

func (o *view) isUnappliable() *cause {
	for _, refusal := range o.Refusals {
		if refusal.Condition == v1beta1.ConditionApplied {
			return refusal.cause(refusal.Message)
		}
	}
	return nil
}

// isContested is about the status too where another field manager owns the condition that reports conflicts: then Stalled reports it.
func (o *view) isContested() *cause {
	for _, f := range o.Contested {
		if f.Condition == v1beta1.ConditionStalled {
			return f.cause(seeCondition(f))
		}
	}
	if len(o.Refusals) > 0 {
		return o.Refusals[0].cause(seeCondition(o.Refusals[0]))
	}
	return nil
}

func (o *view) isUnwrittenAtZero() *cause { return because(o.isToStop() && o.Unwritten) }

func (o *view) isStopped() *cause { return because(o.isToStop()) }

func (o *view) hasFailedPod() *cause {
	if stuck := o.first(rollout.Stuck); stuck != nil && !stuck.lacksPod() {
		return &cause{stuck.state.Reason, stuck.state.Reason, stuck.String()}
	}
	return nil
}

func (o *view) lacksPod() *cause {
	if stuck := o.first(rollout.Stuck); stuck != nil && stuck.lacksPod() {
		return &cause{stuck.state.Detail, stuck.state.Reason, stuck.String()}
	}
	return nil
}

func (o *view) isAstray() *cause {
	if o.Astray != "" {
		return &cause{o.Astray, v1beta1.ReasonServiceLeadsElsewhere, o.Astray}
	}
	return nil
}

func (o *view) awaitsBackend() *cause {
	if o.pods.running == 0 && o.pods.failed > 0 && o.proxyWaits() {
		return &cause{detail: o.pods.failure}
	}
	return nil
}

// isBeingCreated holds on to the first start until it serves: it is a matter of moments, or there is something to report.
func (o *view) isBeingCreated() *cause {
	if o.pods.running == 0 {
		return because(o.firstStart() || len(o.ProxyPods) == 0)
	}
	return because(o.firstStart() && !o.serves() && o.first(rollout.Waiting) == nil)
}

func (o *view) isStarting() *cause {
	return because(o.pods.running == 0 && o.pods.pending+o.pods.failed > 0)
}

func (o *view) lacksHealthyPod() *cause { return because(o.pods.running == 0) }

func (o *view) lacksService() *cause { return because(o.NoService) }

func (o *view) lacksBackend() *cause { return because(o.StatefulSet == nil) }

func (o *view) isDelayed() *cause {
	if o.Unwritten && len(o.Delays) > 0 {
		return o.Delays[0].cause(seeCondition(o.Delays[0]))
	}
	return nil
}

func (o *view) isUnwritten() *cause { return because(o.Unwritten) }

func (o *view) isRollingOut() *cause { return because(!o.serves()) }

func (o *view) isRunning() *cause { return because(true) }

// url returns where clients reach the MCPServer: the address that serves, and while none does the one that was reported, if it still leads to
// the MCPServer.
func (o *view) url(phase v1beta1.MCPServerPhase) string {
	before := o.Server.Status.URL
	switch {
	case o.NoService || o.Astray != "":
		return ""
	case phase == v1beta1.PhaseReady, o.URL == "":
		return cmp.Or(o.URL, before)
	case o.URL == before:
		return before
	}
	return ""
}

func seeCondition(f Finding) string { return fmt.Sprintf("; see the condition %s", f.Condition) }

// firstStart reports whether the MCPServer has been being created ever since. That is reported until it is ready: the steps in between are
// not worth a write each.
func (o Observation) firstStart() bool {
	previous := &o.Server.Status
	rolledOut := meta.FindStatusCondition(previous.Conditions, v1beta1.ConditionRolledOut)
	return previous.Phase == "" || previous.Phase == v1beta1.PhasePending && rolledOut != nil && rolledOut.Reason == v1beta1.ReasonCreating
}

// isToStop reports whether a workload is to have no pods, whoever has set its number.
func (o Observation) isToStop() bool {
	none := func(replicas *int32) bool { return replicas != nil && *replicas == 0 }
	return o.Deployment != nil && none(o.Deployment.Replicas) || o.StatefulSet != nil && none(o.StatefulSet.Replicas)
}

// underWay returns what is in progress, or who is waited for.
func (o Observation) underWay() (reason, message string) {
	if len(o.Delays) > 0 {
		return o.Delays[0].Reason, o.Delays[0].Message
	}
	if hold := o.first(rollout.Waiting); hold != nil {
		return hold.state.Reason, hold.String()
	}
	return v1beta1.ReasonRollingOut, "Freehold is updating objects and pods to match the spec"
}
