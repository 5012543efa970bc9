#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails when hack/update-docs.sh would change something.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
COPY="$(mktemp -d)"
trap 'rm -rf "${COPY}"' EXIT

mkdir -p "${COPY}"/docs/{screens,performance}
cp "${ROOT}"/docs/{architecture,configuration,field-managers,performance,references,rollouts,security}.md "${COPY}/docs/"
"${ROOT}/hack/update-docs.sh" "${COPY}" >/dev/null

status=0
for file in docs/{architecture,configuration,field-managers,performance,references,rollouts,security,metrics,api-reference}.md docs/screens/{owners,conflicts}.svg; do
	diff -u "${ROOT}/${file}" "${COPY}/${file}" || status=1
done
diff -ru -x '*.json' "${ROOT}/docs/performance" "${COPY}/docs/performance" || status=1
if ((status != 0)); then
	echo "The documentation is not what hack/update-docs.sh writes: run make generate." >&2
fi
exit "${status}"
