// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// unreported remembers the conditions that the API server did not accept. When they are computed again they keep their
// transition times: otherwise each pass would have another status, and send it at once although the last one was refused.
type unreported struct {
	perServer[[]metav1.Condition]
}

// note remembers conditions whose write ended with an error, and forgets them when there was none.
func (u *unreported) note(server cache.ObjectName, err error, conditions []metav1.Condition) {
	if err == nil {
		u.forget(server)
		return
	}
	u.perServer.note(server, conditions)
}

// unwritten remembers since when the API server has not taken the status of an object that MCPServers refer to. What is new in that
// status is new since then, for the same reason.
type unwritten struct {
	times sync.Map // apply.ObjectRef -> time.Time
}

func (u *unwritten) since(ref apply.ObjectRef, now time.Time) time.Time {
	if at, ok := u.times.Load(ref); ok {
		return at.(time.Time)
	}
	return now
}

// note remembers that a status was not written, from the first time on, and forgets it once one is.
func (u *unwritten) note(ref apply.ObjectRef, written bool, now time.Time) {
	if written {
		u.forget(ref)
		return
	}
	u.times.LoadOrStore(ref, now)
}

func (u *unwritten) forget(ref apply.ObjectRef) { u.times.Delete(ref) }
