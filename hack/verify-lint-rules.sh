#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Shows that this project's own lint rules find what they are there for: hack/tools/lint/testdata/tree breaks
# each of them. Fails, too, when a package of pkg/ has no rule about what it imports. The test's inputs lie outside
# its module, so its result is never taken from a cache.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/tools/lint"
exec go test -count=1 ./...
