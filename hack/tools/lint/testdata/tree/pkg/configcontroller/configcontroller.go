// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configcontroller

import (
	_ "github.com/freehold-dev/freehold/pkg/controller" // want depguard:configcontroller
)
