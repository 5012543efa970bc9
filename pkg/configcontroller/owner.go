// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configcontroller

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
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

// How long ToolHive's operator has to put its finalizer on a new object, in ConfigsAuto. It does so within a second when it runs, and within
// a minute when it has just lost its lease. Where the caches show no sign of it, it is most likely not there.
const (
	configGrace = time.Minute
	shortGrace  = 1500 * time.Millisecond
)

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

// decideOwner decides which operator writes an object's status and finalizer. seen reports whether ToolHive's has written other objects.
//
// What is Freehold's and ToolHive's operator writes as well is contested, and is not written any more: two operators that answer each
// other would go on for as long as both run. ConfigsFreehold is the user's word that ToolHive is gone, so there the object is
// taken over again once ToolHive has not written for a while.
func decideOwner(mode ConfigsMode, live metav1.Object, now time.Time, seen func() bool) ownerDecision {
	ours := managers.Owns(live, managers.ConfigFinalizer, "")
	last, theirs := takeover.LastOfToolHive(live)
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
	age, grace := now.Sub(live.GetCreationTimestamp().Time), shortGrace
	if age < configGrace && seen() {
		grace = configGrace
	}
	if age < grace {
		return ownerDecision{owner: OwnerUndecided, wait: grace - age}
	}
	return ownerDecision{owner: OwnerFreehold}
}

// seesToolHive reports whether the caches show that ToolHive's operator works on anything.
func (k *Controller) seesToolHive() bool {
	for _, s := range k.Caches.ByNamespace {
		for _, store := range append(slices.Collect(maps.Values(s.ConfigStores)), s.ServerStore) {
			if slices.ContainsFunc(store.GetStore().List(), takeover.Shows) {
				return true
			}
		}
	}
	return false
}

// ConfigCount is how many objects of a kind that MCPServers refer to an operator writes.
type ConfigCount struct {
	Kind  string
	Owner ConfigOwner
	Count int
}

// Owners returns how many objects of each kind that MCPServers refer to each operator writes, sorted.
func (k *Controller) Owners() []ConfigCount {
	count := map[ConfigCount]int{}
	k.mu.Lock()
	for key, state := range k.states {
		count[ConfigCount{Kind: key.kind, Owner: state.owner}]++
	}
	k.mu.Unlock()
	all := make([]ConfigCount, 0, len(count))
	for is, n := range count {
		is.Count = n
		all = append(all, is)
	}
	slices.SortFunc(all, func(a, b ConfigCount) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Owner, b.Owner)) })
	return all
}
