#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails when hack/update-docs.sh would change something.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
COPY="$(mktemp -d)"
trap 'rm -rf "${COPY}"' EXIT

cp "${ROOT}/README.md" "${COPY}/"
"${ROOT}/hack/update-docs.sh" "${COPY}" >/dev/null

if ! diff --unified "${ROOT}/README.md" "${COPY}/README.md"; then
	echo "README.md is not what hack/update-docs.sh writes: run make generate." >&2
	exit 1
fi
