#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails when go mod tidy would change the go.mod or go.sum of a module.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
status=0
while IFS= read -r file; do
	[[ -e "${file}" ]] || continue
	if ! go -C "$(dirname "${file}")" mod tidy -diff; then
		echo "Run: (cd $(dirname "${file}") && go mod tidy)" >&2
		status=1
	fi
done < <(git ls-files --cached --others --exclude-standard --deduplicate -- 'go.mod' '*/go.mod')
exit "${status}"
