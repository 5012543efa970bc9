// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"time"

	_ "k8s.io/client-go/applyconfigurations/core/v1"
	_ "k8s.io/client-go/kubernetes" // want depguard:authserver

	_ "github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	_ "github.com/freehold-dev/freehold/pkg/runconfig" // want depguard:authserver
)

// Year reads what it should be given.
func Year() int { return time.Now().Year() } // want clock
