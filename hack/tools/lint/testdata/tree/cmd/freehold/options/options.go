// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import _ "log" // want depguard:operator

// Workers is the default.
const Workers = 4
