// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	_ "k8s.io/client-go/rest" // want depguard:metrics

	_ "github.com/freehold-dev/freehold/pkg/controller"
	_ "github.com/freehold-dev/freehold/pkg/metricsserver" // want depguard:metrics
)
