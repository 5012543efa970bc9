// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	_ "github.com/freehold-dev/freehold/pkg/controller" // want depguard:observed
)
