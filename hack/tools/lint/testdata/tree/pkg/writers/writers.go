// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers

import (
	_ "k8s.io/client-go/rest" // want depguard:writers

	_ "github.com/freehold-dev/freehold/apis/toolhive/v9"
	_ "github.com/freehold-dev/freehold/pkg/render"
	_ "github.com/freehold-dev/freehold/pkg/request" // want depguard:writers
)
