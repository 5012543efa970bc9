#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails when hack/update-docs.sh would change something.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
COPY="$(mktemp -d)"
trap 'rm -rf "${COPY}"' EXIT

mkdir -p "${COPY}/docs/screens"
cp "${ROOT}/README.md" "${COPY}/"
cp "${ROOT}"/docs/{architecture,security}.md "${COPY}/docs/"
"${ROOT}/hack/update-docs.sh" "${COPY}" >/dev/null

status=0
for file in README.md docs/{architecture,security,metrics,api-reference}.md docs/screens/{owners,conflicts}.svg; do
	diff -u "${ROOT}/${file}" "${COPY}/${file}" || status=1
done
if ((status != 0)); then
	echo "The documentation is not what hack/update-docs.sh writes: run make generate." >&2
fi
exit "${status}"
