// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	_ "github.com/freehold-dev/freehold/pkg/apply" // want depguard:ownership
	_ "github.com/freehold-dev/freehold/pkg/ownership"
)
