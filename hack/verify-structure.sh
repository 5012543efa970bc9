#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Measures what a reader of one sync has to hold in mind, and fails when a measure is above the bound in
# hack/tools/structure/bounds.json. A change that lowers a measure lowers its bound: hack/verify-structure.sh -write does.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
go -C "${ROOT}/hack/tools/structure" run . "$@" "${ROOT}"
