// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	_ "k8s.io/client-go/kubernetes/scheme"
	_ "k8s.io/client-go/rest" // want depguard:plugin-desired

	_ "github.com/freehold-dev/freehold/pkg/request"
	_ "github.com/freehold-dev/freehold/pkg/status" // want depguard:plugin-desired
)
