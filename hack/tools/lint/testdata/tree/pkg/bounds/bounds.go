// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	_ "github.com/freehold-dev/freehold/apis/toolhive/v9" // want depguard:bounds
)
