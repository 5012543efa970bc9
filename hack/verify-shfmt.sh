#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails when hack/update-shfmt.sh would change a shell script, and prints what.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
SHFMT="$(go -C hack/tools/shell tool -n shfmt)"
if ! hack/list-scripts.sh | xargs "${SHFMT}" -d -ln=bash; then
	echo "Not formatted by shfmt: run make fmt." >&2
	exit 1
fi
