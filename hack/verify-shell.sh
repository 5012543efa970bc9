#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails on a shell script that the bash of this machine cannot read, which is bash 3.2 on macOS, and on what ShellCheck finds. Without
# ShellCheck that part is skipped, unless FREEHOLD_SHELLCHECK is "required" (hack/install-check-packages.sh installs it on Debian).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
status=0
WORK="$(mktemp -d)"
trap 'rm -rf "${WORK}"' EXIT

hack/list-scripts.sh >"${WORK}/scripts"
if [[ ! -s "${WORK}/scripts" ]]; then
	echo "no shell scripts are found" >&2
	exit 1
fi
xargs -n 1 /bin/bash -n <"${WORK}/scripts" || status=1

if command -v shellcheck >/dev/null; then
	# Its advice on style differs from version to version.
	xargs shellcheck -x -S info <"${WORK}/scripts" || status=1
elif [[ "${FREEHOLD_SHELLCHECK:-}" == required ]]; then
	echo "shellcheck is required (FREEHOLD_SHELLCHECK) and not on PATH" >&2
	status=1
else
	echo "skipped: ShellCheck, which is not on PATH (Debian: hack/install-check-packages.sh; macOS: brew install shellcheck)"
fi
exit "${status}"
