// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configcontroller"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
)

// The levels of the queue: how soon a key leaves it.
const (
	// levelEdits is for edits, which a user waits for.
	levelEdits priorityqueue.Level = iota
	// levelDeletions is for MCPServers that are deleted, which may be many at once: those of a namespace, or of a tool that creates all anew.
	levelDeletions
	// levelOthers is for first passes, the progress of rollouts and all the rest.
	levelOthers
	// levels is how many there are.
	levels
)

// queueServers is the workqueue of MCPServers, as metrics name it.
const queueServers = "mcpserver"

// Queue is what a workqueue reports about itself.
type Queue struct {
	// Name is that of the queue in client-go's metrics of workqueues.
	Name string
	// OldestWait is how long the key has waited that has waited longest; 0 when none waits.
	OldestWait time.Duration
}

// QueueNames returns the names of all workqueues.
func QueueNames() []string { return []string{configcontroller.QueueName, queueServers} }

// levelOf returns the level for an update of an object.
func levelOf(kind schema.GroupKind, now, before any) priorityqueue.Level {
	if !isEdited(kind, now, before) {
		return levelOthers
	}
	if object, err := meta.Accessor(now); err == nil && object.GetDeletionTimestamp() != nil {
		return levelDeletions
	}
	return levelEdits
}

// levelOfUnseen returns the level for an object that a store shows for the first time. An MCPServer may have been edited while no operator
// was there to see it.
func levelOfUnseen(obj any) priorityqueue.Level {
	server, ok := obj.(*v1beta1.MCPServer)
	switch {
	case !ok:
	case server.DeletionTimestamp != nil:
		return levelDeletions
	case server.Status.ObservedGeneration > 0 && server.Status.ObservedGeneration < server.Generation:
		return levelEdits
	}
	return levelOthers
}

// isEdited reports whether more than the status of an object has changed. An object without a generation has no status that
// changes often. An item that is no object is not edited.
func isEdited(kind schema.GroupKind, now, before any) bool {
	object, err := meta.Accessor(now)
	if err != nil {
		return false
	}
	old, err := meta.Accessor(before)
	if err != nil {
		return false
	}
	if object.GetGeneration() == 0 {
		return object.GetResourceVersion() != old.GetResourceVersion()
	}
	return object.GetGeneration() != old.GetGeneration() ||
		kind == managers.MCPServer && !maps.Equal(object.GetAnnotations(), old.GetAnnotations())
}

// levelOfParent returns the earliest level for what becomes of a child. When many MCPServers are deleted, and perhaps made again, their
// passes would otherwise overtake edits, each time that a child goes.
func levelOfParent(child metav1.Object, server *v1beta1.MCPServer) priorityqueue.Level {
	switch controller := metav1.GetControllerOfNoCopy(child); {
	case controller != nil && inventory.IsMCPServer(*controller) && (server == nil || controller.UID != server.UID):
		return levelOthers // The child of a predecessor.
	case server != nil && server.DeletionTimestamp != nil:
		return levelDeletions
	}
	return levelEdits
}
