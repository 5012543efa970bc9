// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	_ "k8s.io/client-go/rest" // want depguard:shell

	_ "github.com/freehold-dev/freehold/apis/toolhive/v9" // want depguard:shell
	_ "github.com/freehold-dev/freehold/pkg/printable"
)
