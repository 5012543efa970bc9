#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails when hack/update-manifests.sh would change something.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
COPY="$(mktemp -d)"
trap 'rm -rf "${COPY}"' EXIT

"${ROOT}/hack/copy-tree.sh" "${COPY}"
"${ROOT}/hack/update-manifests.sh" "${COPY}" >/dev/null

if ! diff -ruN "${ROOT}/deploy" "${COPY}/deploy"; then
	echo "Manifests are not what hack/update-manifests.sh renders: run make manifests." >&2
	exit 1
fi
