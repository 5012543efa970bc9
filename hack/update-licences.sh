#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Writes THIRD_PARTY_LICENCES.md: the modules that the programs are made of, with their licences. It fails on a licence that
# hack/tools/licences does not recognise or allow. With an argument, writes that file instead (hack/verify-licences.sh does).
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
OUT="${1:-${ROOT}/THIRD_PARTY_LICENCES.md}"

list="$(go -C "${ROOT}/hack/tools/licences" run . "${ROOT}")"
printf '%s\n' "${list}" >"${OUT}"
