// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configcontroller

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// ConfigsMode says which operator writes the status and the finalizer of the objects that MCPServers refer to.
type ConfigsMode string

const (
	// ConfigsAuto leaves to ToolHive those of which its operator owns anything. The others are Freehold's.
	ConfigsAuto ConfigsMode = "auto"
	// ConfigsFreehold makes all Freehold's: it takes over what ToolHive's operator owns.
	ConfigsFreehold ConfigsMode = "freehold"
	// ConfigsToolHive leaves all to ToolHive's operator.
	ConfigsToolHive ConfigsMode = "toolhive"
)

// ConfigOwner is the operator that writes the status and the finalizer of an object that MCPServers refer to.
type ConfigOwner string

const (
	// OwnerFreehold is this operator.
	OwnerFreehold ConfigOwner = "freehold"
	// OwnerToolHive is ToolHive's.
	OwnerToolHive ConfigOwner = "toolhive"
	// OwnerUndecided is neither yet: ToolHive's operator, if there is one, has had no time to begin.
	OwnerUndecided ConfigOwner = "undecided"
)

// ConfigOwners returns all of them.
func ConfigOwners() []ConfigOwner {
	return []ConfigOwner{OwnerFreehold, OwnerToolHive, OwnerUndecided}
}

// configGrace is how long ToolHive's operator has to put its finalizer on a new object, in ConfigsAuto. It does so within a second when
// it runs, and within a minute when it has just lost its lease.
const configGrace = time.Minute

// ownerDecision says which operator writes an object's status and finalizer.
type ownerDecision struct {
	owner ConfigOwner
	// inherits is set when Freehold takes over what ToolHive's managers own.
	inherits bool
	// contested is set when ToolHive's managers own a part of what was Freehold's: neither writes after the other.
	contested bool
	// wait is when another decision may be due without an event; 0 for never.
	wait time.Duration
}

// decideOwner decides which operator writes an object's status and finalizer.
//
// What is Freehold's and ToolHive's operator writes as well is contested, and is not written any more: two operators that answer each
// other would go on for as long as both run. ConfigsFreehold is the user's word that ToolHive is gone, so there the object is
// taken over again once ToolHive has not written for a while.
func decideOwner(mode ConfigsMode, live metav1.Object, now time.Time) ownerDecision {
	ours := managers.Owns(live, managers.ConfigFinalizer, "")
	last, theirs := lastOfToolHive(live)
	quiet := now.Sub(last)
	switch {
	case mode == ConfigsToolHive:
		return ownerDecision{owner: OwnerToolHive}
	case theirs && mode == ConfigsFreehold && (!ours || quiet >= apply.LongestWait):
		return ownerDecision{owner: OwnerFreehold, inherits: true}
	case theirs && mode == ConfigsFreehold:
		return ownerDecision{owner: OwnerToolHive, contested: true, wait: apply.LongestWait - quiet}
	case theirs:
		return ownerDecision{owner: OwnerToolHive, contested: ours}
	case ours || mode == ConfigsFreehold:
		return ownerDecision{owner: OwnerFreehold}
	}
	if age := now.Sub(live.GetCreationTimestamp().Time); age < configGrace {
		return ownerDecision{owner: OwnerUndecided, wait: configGrace - age}
	}
	return ownerDecision{owner: OwnerFreehold}
}

// lastOfToolHive returns when a manager of ToolHive last changed the fields of an object that it owns; ok is false when none
// owns any.
func lastOfToolHive(live metav1.Object) (at time.Time, ok bool) {
	for _, entry := range live.GetManagedFields() {
		if owner := ownership.OwnerOf(&entry); takeover.FromToolHive(owner) {
			at, ok = slices.MaxFunc([]time.Time{at, owner.Since}, time.Time.Compare), true
		}
	}
	return at, ok
}

// ConfigCount is how many objects of a kind that MCPServers refer to an operator writes.
type ConfigCount struct {
	Kind  string
	Owner ConfigOwner
	Count int
}

// Owners returns how many objects of each kind that MCPServers refer to each operator writes, sorted.
func (k *Controller) Owners() []ConfigCount {
	type of struct {
		kind  string
		owner ConfigOwner
	}
	count := map[of]int{}
	k.mu.Lock()
	for key, state := range k.states {
		count[of{key.kind, state.owner}]++
	}
	k.mu.Unlock()
	all := make([]ConfigCount, 0, len(count))
	for is, n := range count {
		all = append(all, ConfigCount{is.kind, is.owner, n})
	}
	slices.SortFunc(all, func(a, b ConfigCount) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Owner, b.Owner)) })
	return all
}
