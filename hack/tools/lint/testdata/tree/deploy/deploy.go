// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import _ "github.com/freehold-dev/freehold/hack/cluster" // want depguard:operator
