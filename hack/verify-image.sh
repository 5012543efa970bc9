#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the image twice, from two copies of this tree in different places, and fails when the results differ.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
WORK="$(mktemp -d)"
trap 'rm -rf "${WORK}"' EXIT

mkdir "${WORK}/tree"
"${ROOT}/hack/copy-tree.sh" "${WORK}/tree"
mkdir "${WORK}/elsewhere"
cp -R "${WORK}/tree" "${WORK}/elsewhere/copy" # not copied with its times: they must not matter

"${WORK}/tree/hack/build-image.sh" "${WORK}/first"
"${WORK}/elsewhere/copy/hack/build-image.sh" "${WORK}/second"

if ! diff -rq "${WORK}/first" "${WORK}/second"; then
	echo "Two builds of the same source gave two images." >&2
	exit 1
fi
echo "Both are $(<"${WORK}/first/digest")."
