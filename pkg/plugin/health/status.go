// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// Status is the answer of status, for programs as well. Names and meanings of its fields stay; more may come.
type Status struct {
	// Plugin is the version of kubectl freehold.
	Plugin   string   `json:"plugin"`
	Operator Operator `json:"operator"`
	// Namespace that was looked at; empty for all.
	Namespace string `json:"namespace,omitempty"`
	// Servers is how many MCPServers there are, and States how many of them are Ready, or for which reason they are not; Unobserved are
	// those whose status tells of an earlier generation, Unknown those without the condition Ready. Deleting are those that are being
	// deleted, which are in no state.
	Servers  int            `json:"servers"`
	States   map[string]int `json:"states"`
	Deleting int            `json:"deleting"`
	// Conflicts, StuckRollouts and Refused are the objects with such a problem, by namespace and name.
	Conflicts     []Problem `json:"conflicts"`
	StuckRollouts []Problem `json:"stuckRollouts"`
	// Refused are MCPServers that are not written as they ask for: a spec or a reference that cannot be used, or a refused write.
	Refused []Problem `json:"refused"`
	// Unobserved are MCPServers that were changed more than a minute ago, and no operator has noticed.
	Unobserved []Problem `json:"unobserved"`
	// Altered are MCPServers that are served, with a field that an admission policy or webhook stores otherwise than the operator sends it.
	Altered   []Problem `json:"altered,omitempty"`
	Takeovers Takeovers `json:"takeovers"`
	// NotChecked says what could not be looked at, and why.
	NotChecked []string `json:"notChecked,omitempty"`
}

// Operator describes the running operator.
type Operator struct {
	// Object is the Deployment as kubectl takes it, and its namespace.
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	// Image of the operator, and the Version in its tag; both empty where there is no Deployment, or it may not be read.
	Image   string `json:"image,omitempty"`
	Version string `json:"version,omitempty"`
	// Scope is which MCPServers it looks after. Others may have an operator of their own.
	cluster.Scope
	// Replicas that there should be, and those that are Available.
	Replicas  int32 `json:"replicas"`
	Available int32 `json:"available"`
	// Leader holds the Lease and renews it; empty for none. Renewed is when it did the last time.
	Leader  string     `json:"leader,omitempty"`
	Renewed *time.Time `json:"renewed,omitempty"`
	// NoElection is set where the operator runs with --leader-elect=false, so that there is no leader.
	NoElection bool `json:"noElection,omitempty"`
	// Problem says what is wrong: mostly, why no replica works. Empty for nothing, or for what is not known.
	Problem string `json:"problem,omitempty"`
}

// Problem is an object that is not as it should be.
type Problem struct {
	Namespace string `json:"namespace"`
	// Object as kubectl takes it, such as mcpserver/web.
	Object  string    `json:"object"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

// Takeovers are those from ToolHive that are not done.
type Takeovers struct {
	// UnderWay, Waiting for their turn, and waiting for Approval.
	UnderWay int `json:"underWay"`
	Waiting  int `json:"waiting"`
	Approval int `json:"approval"`
	// HeldUp are those that cannot begin, and those that have been under way for an hour.
	HeldUp []Problem `json:"heldUp"`
}

const (
	// slow is how long a takeover may be under way.
	slow = time.Hour
	// late is how long the operator may take to notice a change: longer than a pass with a slow API server, and than another replica
	// takes to become the leader.
	late = time.Minute
)

// States of MCPServers, besides the reasons of the condition Ready.
const (
	stateReady      = "Ready"
	stateUnobserved = "Unobserved"
	stateUnknown    = "Unknown"
)

// Healthy reports whether nothing needs looking after.
func (s *Status) Healthy() bool {
	return s.Operator.Problem == "" && len(s.Conflicts)+len(s.StuckRollouts)+len(s.Refused)+len(s.Unobserved)+len(s.Takeovers.HeldUp) == 0
}

// Look sums up an installation, with the MCPServers of a namespace, or of all with an empty one. It returns an error when the user may
// not read MCPServers at all, and when the cluster does not answer.
func Look(s Subject, namespace string) (*Status, error) {
	found := &Status{
		Plugin: s.Plugin, Namespace: namespace, States: map[string]int{}, Conflicts: []Problem{}, StuckRollouts: []Problem{}, Refused: []Problem{},
		Unobserved: []Problem{}, Takeovers: Takeovers{HeldUp: []Problem{}},
	}
	servers, err := s.Client.Servers(namespace)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	for _, server := range servers {
		found.add(server, s.Now)
	}
	objects, forbidden, err := s.Client.Configs(namespace)
	if err != nil {
		found.NotChecked = append(found.NotChecked, "conflicts about what MCPServers refer to: "+reasonOf(err))
	}
	if len(forbidden) > 0 {
		found.NotChecked = append(found.NotChecked, "conflicts about what MCPServers refer to: needs the right to list "+strings.Join(forbidden, ", "))
	}
	for _, object := range objects {
		ref := takeover.RefOf(object)
		if c := problem(desired.ConditionsOf(object), v1beta1.ConditionFieldsOwned, metav1.ConditionFalse); c != nil {
			found.Conflicts = append(found.Conflicts, problemOf(ref.Namespace, ref.String(), c))
		}
	}
	found.lookAtOperator(s)
	return found, nil
}

// add counts an MCPServer.
func (s *Status) add(server *v1beta1.MCPServer, now time.Time) {
	s.Servers++
	conditions := server.Status.Conditions
	tell := func(to *[]Problem, c *metav1.Condition) {
		*to = append(*to, problemOf(server.Namespace, "mcpserver/"+server.Name, c))
	}
	ready := meta.FindStatusCondition(conditions, v1beta1.ConditionReady)
	switch {
	case server.DeletionTimestamp != nil:
		s.Deleting++
	case server.Status.ObservedGeneration < server.Generation && problem(conditions, v1beta1.ConditionTakenOver, metav1.ConditionFalse) == nil:
		s.States[stateUnobserved]++
		if since := changed(server); now.Sub(since) > late {
			tell(&s.Unobserved, &metav1.Condition{Reason: stateUnobserved, LastTransitionTime: metav1.NewTime(since), Message: fmt.Sprintf(
				"generation %d, and its status tells of %d: no operator has noticed the change", server.Generation, server.Status.ObservedGeneration)})
		}
	case ready == nil:
		s.States[stateUnknown]++
	case ready.Status == metav1.ConditionTrue:
		s.States[stateReady]++
	default:
		s.States[ready.Reason]++
	}
	contested := problem(conditions, v1beta1.ConditionFieldsOwned, metav1.ConditionFalse)
	stalled := problem(conditions, v1beta1.ConditionStalled, metav1.ConditionTrue)
	if contested == nil && stalled != nil && stalled.Reason == v1beta1.ReasonFieldManagerConflict {
		contested = stalled // Another field manager holds the condition FieldsOwned as well.
	}
	if contested != nil {
		tell(&s.Conflicts, contested)
	}
	if altered := problem(conditions, v1beta1.ConditionApplied, metav1.ConditionTrue); altered != nil && altered.Reason == v1beta1.ReasonAltered {
		tell(&s.Altered, altered)
	}
	switch {
	case stalled == nil, contested != nil && stalled.Reason == contested.Reason:
	case slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return c.Type != stalled.Type && c.Reason == stalled.Reason }):
		// The problem in Stalled has a condition of its own. A rollout that is stuck has none.
		tell(&s.Refused, stalled)
	default:
		tell(&s.StuckRollouts, stalled)
	}
	switch c := problem(conditions, v1beta1.ConditionTakenOver, metav1.ConditionFalse); {
	case c == nil:
	case c.Reason == v1beta1.ReasonWaiting:
		s.Takeovers.Waiting++
	case c.Reason == v1beta1.ReasonNeedsApproval:
		s.Takeovers.Approval++
	case c.Reason == v1beta1.ReasonCannotTakeOver, c.Reason == v1beta1.ReasonTakingOver && now.Sub(c.LastTransitionTime.Time) > slow:
		tell(&s.Takeovers.HeldUp, c)
	case c.Reason == v1beta1.ReasonTakingOver:
		s.Takeovers.UnderWay++
	}
}

// changed returns when an MCPServer was written last, by whomever, but for its status: its spec was changed then, or before.
func changed(server *v1beta1.MCPServer) (last time.Time) {
	last = server.CreationTimestamp.Time
	for _, entry := range server.ManagedFields {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

func problemOf(namespace, object string, c *metav1.Condition) Problem {
	return Problem{Namespace: namespace, Object: object, Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
}

// lookAtOperator goes by the checks of Examine that say whether the operator works.
func (s *Status) lookAtOperator(subject Subject) {
	e := newExamination(subject)
	s.Operator.Object, s.Operator.Namespace = e.deploymentName()
	if deployment, err := e.deployment(); err == nil {
		s.Operator.Replicas, s.Operator.Available = ptr.Deref(deployment.Spec.Replicas, 1), deployment.Status.AvailableReplicas
	}
	if process, err := e.process(); err == nil {
		s.Operator.Image = process.Image
		s.Operator.Version = tagOf(process.Image)
		s.Operator.NoElection, s.Operator.Scope = !process.Elects, process.Scope
	}
	for _, look := range []func(*examination, *Check) error{(*examination).operator, (*examination).leader, (*examination).rights} {
		c := &Check{}
		if err := look(e, c); err != nil {
			c.cannot(err)
		}
		for _, f := range c.Findings {
			if f.Severity == Error {
				s.Operator.Problem = fmt.Sprintf("%s in namespace %s: %s", f.Object, f.Namespace, f.Message)
				return
			}
		}
		for _, text := range c.NotChecked {
			if text = "the operator: " + text; !slices.Contains(s.NotChecked, text) {
				s.NotChecked = append(s.NotChecked, text)
			}
		}
	}
	if lease, err := e.lease(); err == nil && !s.Operator.NoElection {
		if holder, inTime := cluster.Holder(lease, subject.Now); inTime {
			s.Operator.Leader, s.Operator.Renewed = holder, &lease.Spec.RenewTime.Time
		}
	}
}
