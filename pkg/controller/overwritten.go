// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/status"
)

const (
	// minStatusWait and maxStatusWait bound how often a status is written again that another process overwrites.
	minStatusWait = time.Second
	maxStatusWait = time.Minute
)

// overwritten slows down the writes of a status that another process under the name of our field manager writes too: an operator that
// has lost its lease and does not know it yet, or one of another installation. The API server sees no conflict then, and two that see
// different things would overwrite each other as fast as they can. A new status is written at once; one that was written before and
// has been overwritten since, at once the first time, and then after waits that grow.
type overwritten struct {
	*backoff[cache.ObjectName]

	seed    maphash.Seed
	written sync.Map // cache.ObjectName -> uint64
}

func newOverwritten(clock clock.PassiveClock) *overwritten {
	return &overwritten{backoff: newBackoff[cache.ObjectName](clock, minStatusWait, maxStatusWait), seed: maphash.MakeSeed()}
}

// again reports whether a status is the one that this process has written last, and is not there any more.
func (o *overwritten) again(key cache.ObjectName, server *v1beta1.MCPServer, next v1beta1.MCPServerStatus) bool {
	last, known := o.written.Load(key)
	return known && last == o.fingerprint(server, next) && last != o.fingerprint(server, server.Status)
}

// note remembers what has been written.
func (o *overwritten) note(key cache.ObjectName, server *v1beta1.MCPServer, next v1beta1.MCPServerStatus) {
	o.written.Store(key, o.fingerprint(server, next))
}

func (o *overwritten) forget(key cache.ObjectName) {
	o.backoff.forget(key)
	o.written.Delete(key)
}

// fingerprint identifies our part of a status, without the times at which its conditions changed: they change with each overwrite.
func (o *overwritten) fingerprint(server *v1beta1.MCPServer, of v1beta1.MCPServerStatus) uint64 {
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
	return maphash.Bytes(o.seed, append(text, server.UID...)) // The next MCPServer of that name begins without a status.
}
