// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	_ "k8s.io/client-go/rest"

	_ "github.com/freehold-dev/freehold/pkg/controller" // want depguard:plugin-command
	_ "github.com/freehold-dev/freehold/pkg/plugin/show"
)
