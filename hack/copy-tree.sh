#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Copies the work tree, without what git ignores, into an empty directory. Generators run on such a copy to
# show that what is checked in is what they write.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
TO="${1:?the directory to copy to}"

cd "${ROOT}"
# A file that is deleted but still in the index is listed as well; it is not to be copied.
git ls-files -z --cached --others --exclude-standard |
	while IFS= read -r -d '' file; do
		if [[ -e "${file}" || -L "${file}" ]]; then printf '%s\0' "${file}"; fi
	done |
	tar -c --null --no-recursion -T - -f - |
	tar -x -C "${TO}" -f -
