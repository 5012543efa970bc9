// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"math/rand/v2"
	"os"
	"time"

	_ "k8s.io/client-go/applyconfigurations/apps/v1"
	_ "k8s.io/client-go/dynamic"     // want depguard:render
	_ "k8s.io/client-go/tools/cache" // want depguard:render

	_ "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	_ "github.com/freehold-dev/freehold/generated/clientset/versioned"      // want depguard:render
	_ "github.com/freehold-dev/freehold/generated/listers/toolhive/v1beta1" // want depguard:render
	_ "github.com/freehold-dev/freehold/pkg/apply"                          // want depguard:render
	_ "github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	_ "github.com/freehold-dev/freehold/pkg/runconfig"
	_ "github.com/freehold-dev/freehold/pkg/status" // want depguard:render
)

// Dice is not the same twice.
func Dice() int { return rand.IntN(6) } // want pure

// Home is not the same everywhere.
func Home() string { return os.Getenv("HOME") } // want pure

// Later waits.
func Later() { <-time.After(time.Second) } // want pure
