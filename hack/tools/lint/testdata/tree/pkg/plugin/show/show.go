// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package show

import (
	_ "k8s.io/client-go/rest" // want depguard:plugin-show

	_ "github.com/freehold-dev/freehold/pkg/plugin/owners"
	_ "github.com/freehold-dev/freehold/pkg/plugin/wanted" // want depguard:plugin-show
)
