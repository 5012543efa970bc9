// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package passtrace

import (
	_ "github.com/freehold-dev/freehold/pkg/turns" // want depguard:passtrace
)
