// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	_ "k8s.io/client-go/rest" // want depguard:plugin-health

	_ "github.com/freehold-dev/freehold/pkg/plugin/cluster"
	_ "github.com/freehold-dev/freehold/pkg/plugin/printers" // want depguard:plugin-health
)
