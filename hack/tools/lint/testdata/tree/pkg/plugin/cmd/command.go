// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	_ "k8s.io/client-go/rest"

	_ "github.com/freehold-dev/freehold/pkg/controller" // want depguard:plugin-cmd
	_ "github.com/freehold-dev/freehold/pkg/plugin/printers"
)
