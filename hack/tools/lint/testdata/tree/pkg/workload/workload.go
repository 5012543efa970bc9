// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	_ "k8s.io/client-go/rest" // want depguard:workload

	_ "github.com/freehold-dev/freehold/apis/toolhive/v9"
	_ "github.com/freehold-dev/freehold/pkg/render" // want depguard:workload
)
