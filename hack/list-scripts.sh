#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Prints the shell scripts of this checkout, one on a line: those that are called *.sh, and those that begin with #! and a shell.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
{
	git ls-files --cached --others --exclude-standard -- '*.sh'
	# -I leaves out binary files; a match anywhere else than in the first line is no script.
	git grep -InE --untracked '^#!.*[/ ](ba)?sh( |$)' | sed -n 's/:1:#!.*//p'
} | sort -u | while IFS= read -r file; do
	# A file that is deleted but still in the index is listed as well.
	if [[ -e "${file}" ]]; then printf '%s\n' "${file}"; fi
done
