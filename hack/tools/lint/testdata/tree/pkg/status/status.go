// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	_ "k8s.io/client-go/rest" // want depguard:status

	_ "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	_ "github.com/freehold-dev/freehold/pkg/apply" // want depguard:status
)

// Age asks the clock itself.
func Age(t time.Time) time.Duration { return time.Since(t) } // want clock
