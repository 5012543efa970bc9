#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Formats the shell scripts with shfmt, in the version that hack/tools/shell pins.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
SHFMT="$(go -C hack/tools/shell tool -n shfmt)"
hack/list-scripts.sh | xargs "${SHFMT}" -w -ln=bash
