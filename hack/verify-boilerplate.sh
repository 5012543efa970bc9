#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails when a Go file, a shell script or a Makefile does not say who holds its copyright and under which
# licence, near its top.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
status=0
while IFS= read -r file; do
	[[ -e "${file}" ]] || continue
	case "${file}" in
	*.go | *.mod) comment='//' ;;
	*) comment='#' ;;
	esac
	# Build constraints and #! lines come first.
	if ! head -n 6 "${file}" | tr '\n' '|' |
		grep -Fq "${comment} Copyright The Freehold Authors.|${comment} SPDX-License-Identifier: Apache-2.0|"; then
		echo "${file}: the licence header is missing" >&2
		status=1
	fi
done < <(git ls-files --cached --others --exclude-standard --deduplicate -- '*.go' '*.sh' '.ci/run' 'Makefile' '*/Makefile')
exit "${status}"
