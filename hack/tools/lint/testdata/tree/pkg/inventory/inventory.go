// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	_ "k8s.io/client-go/rest" // want depguard:inventory

	_ "github.com/freehold-dev/freehold/apis/toolhive/v9"
	_ "github.com/freehold-dev/freehold/pkg/status" // want depguard:inventory
)
