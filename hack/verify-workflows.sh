#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails on what actionlint finds in the workflows of GitHub: fields and contexts that are not there, expressions of the wrong type,
# inputs that an action does not have, and, where ShellCheck is on PATH, what that finds in their scripts. It asks no service. Also
# fails where a workflow does not say which rights its token has, or names an action otherwise than by a commit, with the version behind it.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
ACTIONLINT="$(go -C "${ROOT}/hack/tools/workflows" tool -n actionlint)"
status=0

cd "${ROOT}"
"${ACTIONLINT}" -no-color .github/workflows/*.yaml || status=1
for workflow in .github/workflows/*.yaml; do
	if ! grep -Eq '^permissions:' "${workflow}"; then
		echo "${workflow}: no permissions for the whole of it" >&2
		status=1
	fi
	if grep -nE '^ *(- )?uses: ' "${workflow}" | grep -vE '@[0-9a-f]{40} # v[0-9.]+$'; then
		echo "${workflow}: name each action by a commit, with its version behind: @COMMIT # v1.2.3" >&2
		status=1
	fi
done
exit "${status}"
