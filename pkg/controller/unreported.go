// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// unreported remembers the conditions that the API server did not take. When they are computed anew they keep the times of
// their transitions: otherwise each pass would have another status, and send it at once although the last one was refused.
type unreported struct {
	conditions sync.Map // cache.ObjectName -> []metav1.Condition
}

func (u *unreported) of(server cache.ObjectName) []metav1.Condition {
	conditions, _ := u.conditions.Load(server)
	found, _ := conditions.([]metav1.Condition)
	return found
}

// note remembers conditions whose write ended with an error, and forgets them when there was none.
func (u *unreported) note(server cache.ObjectName, err error, conditions []metav1.Condition) {
	if err == nil {
		u.forget(server)
		return
	}
	u.conditions.Store(server, conditions)
}

func (u *unreported) forget(server cache.ObjectName) { u.conditions.Delete(server) }
