#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails on a finding of golangci-lint in any module.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
LINTER="$(go -C "${ROOT}/hack/tools/lint" tool -n golangci-lint)"

status=0
while IFS= read -r file; do
	[[ -e "${ROOT}/${file}" ]] || continue
	module="$(dirname "${file}")"
	# A module that only lists tools has nothing to look at.
	if [[ -z "$(git -C "${ROOT}/${module}" ls-files --cached --others --exclude-standard -- '*.go')" ]]; then continue; fi
	echo "golangci-lint in ${module}"
	(cd "${ROOT}/${module}" && "${LINTER}" run --config="${ROOT}/.golangci.yml" "$@" ./...) || status=1
done < <(git -C "${ROOT}" ls-files --cached --others --exclude-standard --deduplicate -- 'go.mod' '*/go.mod')
exit "${status}"
