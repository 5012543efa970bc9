#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Writes what is derived from code into the documentation: the table of writers in docs/field-managers.md, that of children in
# docs/architecture.md, that of phases in docs/rollouts.md, those of rights in docs/security.md, that of older proxyrunners in
# docs/references.md, that of flags in docs/configuration.md, docs/metrics.md, docs/api-reference.md, the pictures of a terminal in docs/screens, and what the benchmark
# has recorded: the tables of docs/performance.md and the plots in docs/performance.
# With an argument, does so in that copy of the tree (hack/verify-docs.sh does).
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
OUT="${1:-${ROOT}}"

go -C "${ROOT}" run ./docs/derived "${OUT}"/docs/{architecture,field-managers,references,rollouts,security}.md
go -C "${ROOT}" test -count=1 -run='^TestFlagsAreDocumented$' ./cmd/freehold -write-flags="${OUT}/docs/configuration.md"
go -C "${ROOT}" run ./docs/metricslist "${OUT}/docs/metrics.md"
go -C "${ROOT}" run ./docs/screens test/plugin/testdata "${OUT}/docs/screens"
go -C "${ROOT}/test" run ./bench/render "${ROOT}"/docs/performance/{recorded,soak}.json "${OUT}/docs/performance.md" "${OUT}/docs/performance"

REFERENCE="${OUT}/docs/api-reference.md"
TOOL="${ROOT}/hack/tools/apireference"
(cd "${TOOL}" && go tool crd-ref-docs --log-level=WARN --max-depth=20 --renderer=markdown \
	--config=config.yaml --templates-dir=templates --source-path="${ROOT}/apis" --output-path="${REFERENCE}.types")
# Its templates leave spaces at the ends of lines, and more empty lines than one.
sed 's/[[:space:]]*$//' "${REFERENCE}.types" | cat -s >"${REFERENCE}"
rm "${REFERENCE}.types"
go -C "${ROOT}" run ./docs/apiconstants "${ROOT}" >>"${REFERENCE}"
