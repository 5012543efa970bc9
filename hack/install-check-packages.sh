#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian package with ShellCheck, which hack/verify-shell.sh uses where it is there, and says so.
set -euo pipefail

if command -v shellcheck >/dev/null; then
	echo "ShellCheck is installed."
	exit 0
fi
exec "$(dirname "${BASH_SOURCE[0]}")/install-packages.sh" "A part of hack/verify-shell.sh" shellcheck
