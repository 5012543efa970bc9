// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldowners

import (
	_ "k8s.io/client-go/rest" // want depguard:fieldowners

	_ "github.com/freehold-dev/freehold/apis/toolhive/v9" // want depguard:fieldowners
	_ "github.com/freehold-dev/freehold/pkg/ownership"
)
