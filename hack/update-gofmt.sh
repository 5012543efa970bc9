#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Formats the Go files of every module, imports grouped, with golangci-lint's formatters.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
LINTER="$(go -C "${ROOT}/hack/tools/lint" tool -n golangci-lint)"

while IFS= read -r file; do
	if [[ -e "${ROOT}/${file}" ]]; then
		(cd "$(dirname "${ROOT}/${file}")" && "${LINTER}" fmt --config="${ROOT}/.golangci.yml" ./...)
	fi
done < <(git -C "${ROOT}" ls-files --cached --others --exclude-standard --deduplicate -- 'go.mod' '*/go.mod')
