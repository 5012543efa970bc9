#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails when a Go file is not formatted by gofmt.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
unformatted="$(git ls-files -z --cached --others --exclude-standard --deduplicate -- '*.go' |
	while IFS= read -r -d '' file; do
		if [[ -e "${file}" ]]; then printf '%s\0' "${file}"; fi
	done | xargs -0 gofmt -l)"
if [[ -n "${unformatted}" ]]; then
	printf 'Not formatted by gofmt:\n%s\n' "${unformatted}" >&2
	exit 1
fi
