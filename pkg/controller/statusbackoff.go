// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"time"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
	"github.com/freehold-dev/freehold/pkg/status"
)

// statusBounds bound how often a status is written again that another process overwrites.
var statusBounds = priorityqueue.Bounds{Shortest: time.Second, Longest: time.Minute}

// statusBackoff slows down the writes of a status that another process under the name of our field manager writes too: an operator that
// has lost its lease and does not know it yet, or one of another installation. The API server sees no conflict then, and two that see
// different things would overwrite each other as fast as they can. A new status is written at once; one that was written before and
// has been overwritten since, at once the first time, and then after waits that grow.
type statusBackoff struct {
	priorityqueue.Wait
	// written is the fingerprint of the status that this process has written last; 0 for none.
	written uint64
}

// again reports whether a status is the one that this process has written last, and is not there any more.
func (b *statusBackoff) again(server *v1beta1.MCPServer, next v1beta1.MCPServerStatus) bool {
	return b.written != 0 && b.written == fingerprint(server, next) && b.written != fingerprint(server, server.Status)
}

var statusSeed = maphash.MakeSeed()

// fingerprint identifies our part of a status, without the times at which its conditions changed: they change with each overwrite.
func fingerprint(server *v1beta1.MCPServer, of v1beta1.MCPServerStatus) uint64 {
	config := status.Intent(server, of)
	owned := v1beta1.OwnedConditions()
	conditions := config.Status.Conditions[:0]
	for _, condition := range config.Status.Conditions {
		if slices.Contains(owned, *condition.Type) {
			condition.LastTransitionTime = nil
			conditions = append(conditions, condition)
		}
	}
	config.Status.Conditions = conditions
	text, err := json.Marshal(config.Status)
	if err != nil {
		return 0 // Texts and numbers alone can be encoded.
	}
	return maphash.Bytes(statusSeed, text)
}
