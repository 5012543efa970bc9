// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldowners

import (
	_ "k8s.io/client-go/rest" // want depguard:plugin-fieldowners

	_ "github.com/freehold-dev/freehold/apis/toolhive/v9" // want depguard:plugin-fieldowners
	_ "github.com/freehold-dev/freehold/pkg/ownership"
)
