// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	_ "k8s.io/client-go/rest"

	_ "github.com/freehold-dev/freehold/pkg/controller" // want depguard:plugin-cluster
	_ "github.com/freehold-dev/freehold/pkg/plugin/desired"
)
