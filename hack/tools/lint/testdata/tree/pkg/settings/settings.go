// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	_ "k8s.io/client-go/rest" // want depguard:settings

	_ "github.com/freehold-dev/freehold/apis/toolhive/v9" // want depguard:settings
	_ "github.com/freehold-dev/freehold/pkg/render"
)
