// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	_ "k8s.io/client-go/rest" // want depguard:plugin-takeover

	_ "github.com/freehold-dev/freehold/pkg/plugin/cluster" // want depguard:plugin-takeover
	_ "github.com/freehold-dev/freehold/pkg/plugin/desired"
)
