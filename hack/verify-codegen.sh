#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails when hack/update-codegen.sh would change something.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
COPY="$(mktemp -d)"
trap 'rm -rf "${COPY}"' EXIT

"${ROOT}/hack/copy-tree.sh" "${COPY}"
"${ROOT}/hack/update-codegen.sh" "${COPY}" >"${COPY}/codegen.log" 2>&1 || {
	cat "${COPY}/codegen.log" >&2
	exit 1
}

cd "${ROOT}"
status=0
for path in apis generated deploy/crd hack/tools/codegen; do
	diff -ruN "${path}" "${COPY}/${path}" || status=1
done
if ((status != 0)); then
	echo "Generated code is not what hack/update-codegen.sh writes: run make generate." >&2
fi
exit "${status}"
