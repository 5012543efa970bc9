// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"os"
	"time"

	_ "k8s.io/client-go/kubernetes" // want depguard:runconfig

	_ "github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	_ "github.com/freehold-dev/freehold/generated/clientset/versioned" // want depguard:runconfig
	_ "github.com/freehold-dev/freehold/pkg/ownership"                 // want depguard:runconfig
)

// Host reads what it should be given.
func Host() string { return os.Getenv("HOST") } // want pure

// Year reads what it should be given.
func Year() int { return time.Now().Year() } // want clock
