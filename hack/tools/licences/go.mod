// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

module github.com/freehold-dev/freehold/hack/tools/licences

go 1.26.0

require github.com/google/licensecheck v0.3.1
