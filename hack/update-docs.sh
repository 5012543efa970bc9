#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Writes what is derived from code into the documentation: the table of writers in README.md, and docs/metrics.md.
# With an argument, does so in that copy of the tree (hack/verify-docs.sh does).
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
OUT="${1:-${ROOT}}"

go -C "${ROOT}" run ./docs/whowriteswhat "${OUT}/README.md"
mkdir -p "${OUT}/docs"
go -C "${ROOT}" run ./docs/metricslist "${OUT}/docs/metrics.md"
