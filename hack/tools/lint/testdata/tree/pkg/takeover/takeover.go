// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	_ "k8s.io/client-go/rest" // want depguard:takeover

	_ "github.com/freehold-dev/freehold/apis/toolhive/v9"
	_ "github.com/freehold-dev/freehold/pkg/render"
	_ "github.com/freehold-dev/freehold/pkg/status" // want depguard:takeover
)
