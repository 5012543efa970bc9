// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
	"github.com/freehold-dev/freehold/pkg/rollout"
)

// serverState is all that passes over one MCPServer leave to the passes after them. It needs no lock, since one worker at a time works on
// a key; published alone is read by others. It ends as a whole when the MCPServer goes, or another one has its name. It is lost with the
// process: each field says what that costs.
//
// What is remembered of the process, and not of one MCPServer, stays apart: the turns of takeovers and rollouts (turns.Limiter), the requests
// and what came of them (apply.Applier), the watches of ConfigMaps that MCPServers refer to (configMaps), and the waits of the queue.
type serverState struct {
	// uid of the MCPServer; empty until a pass has seen it.
	uid types.UID
	// published is what metrics report; nil for nothing.
	published atomic.Pointer[metricsState]

	// confirmedOwner has the doubts about children for which the API server has confirmed the MCPServer, see ownFinalizer. Without it one
	// more request confirms it again.
	confirmedOwner string
	// confirmedReferences has the doubts for which reads have shown that references have no newer state, see confirmReferences, and
	// confirmationWait is how long it is before they are read again. Without it they are read at once.
	confirmedReferences string
	confirmationWait    priorityqueue.Wait
	// orphaned is set once the MCPServer was seen to be deleted with the request to leave its children behind. Without it an event calls
	// them left behind, which says how to delete them.
	orphaned bool
	// proved is set when none of the children of the MCPServer, which is being deleted, are to stay, see decideDeletion. Without it the
	// proof is repeated, as long as there is a child that can give it.
	proved bool

	// unlabelled are the objects in the places of children that no informer shows. Without them they are found again, by a refused
	// request each.
	unlabelled unlabelledObjects
	// configMaps are the ConfigMaps, named by their content, that were wanted last. A pass waits for the caches to show them; a process
	// that has just begun has written none.
	configMaps []apply.ObjectRef
	// settled is how the last pass that left nothing to do has left the children; nil for none. Without it a pass looks at each child.
	settled *settledPass
	// capWaits are how long it is before a number of replicas is set back again that another client keeps setting, in the order of
	// inventory.Workloads. Without them it is set back at once.
	capWaits [2]priorityqueue.Wait
	// asideWait is how long it is before the proxy's documents get another name because another client has made an object of the present
	// one. Without it they get one at once.
	asideWait priorityqueue.Wait

	// withoutEffect is what the MCPServer referred to when that had changed and its proxy had nothing to change: the annotation of a
	// Deployment is written with its template alone, and does not tell. Without it the MCPServer waits for a turn that it does not need.
	withoutEffect apply.References
	// taken are the fields that were taken for the present request to take. The record on the MCPServer counts; this is for a manager
	// that claims a field again within the second, which the times in managedFields do not show.
	taken takeState

	// failedProxies are the proxies that failed for want of a backend, see recoverProxies. Without them the kubelet's wait remains.
	failedProxies map[types.UID]failure
	// reattachedTo is the process for which proxies were replaced last, see stranded. Without it the ages of the pods tell; as these are
	// by the clocks of several machines, they alone might have one pod after the other replaced.
	reattachedTo string
	// unobservedSince is since when a workload has had a change that its controller has not looked at, zero for not, and creation the pod
	// that the controller of the StatefulSet has to create. Without them the time is counted anew.
	unobservedSince time.Time
	creation        rollout.Creation

	// told is what the status tells. Nothing is read out of its words.
	told ownStatus
	// pending are the conditions that the API server did not accept. When they are computed again they keep their transition times:
	// otherwise each pass would have another status, and send it at once although the last one was refused.
	pending []metav1.Condition
	// statusBackoff slows down the writes of a status that another process overwrites.
	statusBackoff statusBackoff
}

// notePending remembers conditions whose write ended with an error, and forgets them when there was none.
func (s *serverState) notePending(err error, conditions []metav1.Condition) {
	if s.pending = conditions; err == nil {
		s.pending = nil
	}
}

// serverStates has the states of all MCPServers.
type serverStates struct {
	mu sync.Mutex
	of map[cache.ObjectName]*serverState
}

// get returns the state of an MCPServer, which is a new one if there was none.
func (s *serverStates) get(key cache.ObjectName) *serverState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[cache.ObjectName]*serverState{}
	}
	if s.of[key] == nil {
		s.of[key] = &serverState{}
	}
	return s.of[key]
}

func (s *serverStates) drop(key cache.ObjectName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, key)
}

// places returns the references of everything that may be made for an MCPServer, with the ConfigMaps that were last wanted.
func (s *serverState) places(server cache.ObjectName) []apply.ObjectRef {
	return append(observed.NamedChildren(server), s.configMaps...)
}
