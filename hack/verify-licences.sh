#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails when hack/update-licences.sh would change something, or when a dependency has a licence that is not allowed.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
LIST="$(mktemp)"
trap 'rm -f "${LIST}"' EXIT

"${ROOT}/hack/update-licences.sh" "${LIST}"
if ! diff -u "${ROOT}/THIRD_PARTY_LICENCES.md" "${LIST}"; then
	echo "The list of licences is not what hack/update-licences.sh writes: run make generate." >&2
	exit 1
fi
