// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	_ "k8s.io/client-go/applyconfigurations/core/v1"
	_ "k8s.io/client-go/rest" // want depguard:request

	_ "github.com/freehold-dev/freehold/apis/toolhive/v9"
	_ "github.com/freehold-dev/freehold/pkg/apply"
	_ "github.com/freehold-dev/freehold/pkg/render" // want depguard:request
)
