#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails when the programs would call themselves released though they are built from something else than the tag, or when the file
# VERSION still has a version that is released. hack/verify-manifests.sh and hack/verify-release.sh look for it everywhere else.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
COPY="$(mktemp -d)"
trap 'rm -rf "${COPY}"' EXIT
VERSION="$(<"${ROOT}/VERSION")"
status=0

# expect WHEN VERSION: what the programs of the copy would call themselves.
expect() {
	local variables
	variables="$("${COPY}/hack/version.sh")"
	if ! grep -Fxq "BUILD_VERSION=$2" <<<"${variables}"; then
		echo "$1: want BUILD_VERSION=$2, got" >&2
		echo "${variables}" >&2
		status=1
	fi
}

# refuse WHEN TAG: a release of the copy under that tag has to be refused, before anything is built.
refuse() {
	if TAG="$2" PATH="${COPY}/none:${PATH}" "${COPY}/hack/release.sh" "${COPY}/out" 2>/dev/null; then
		echo "$1: a release as $2 is not refused" >&2
		status=1
	fi
}

in_copy() { git -C "${COPY}" -c user.name=nobody -c user.email=nobody@example.com -c tag.gpgSign=false -c commit.gpgSign=false "$@"; }

"${ROOT}/hack/copy-tree.sh" "${COPY}"
# Where anything would be built, that fails.
mkdir "${COPY}/none"
printf '#!/bin/sh\nexit 0\n' >"${COPY}/none/go"
chmod +x "${COPY}/none/go"
echo /none/ >>"${COPY}/.gitignore"

expect "no git checkout" "${VERSION}-dev+unknown"
in_copy init -q
in_copy add -A
in_copy commit -q -m first
COMMIT="$(in_copy rev-parse --short=12 HEAD)"
expect "no tag" "${VERSION}-dev+${COMMIT}"
refuse "no tag" "${VERSION}"
in_copy tag v99.0.0
expect "another tag" "${VERSION}-dev+${COMMIT}"
refuse "another tag" v99.0.0
in_copy tag "${VERSION}"
expect "the tag" "${VERSION}"
echo >>"${COPY}/README.md"
expect "changed since the tag" "${VERSION}-dev+${COMMIT}-dirty"
refuse "changed since the tag" "${VERSION}"
in_copy commit -q -a -m second
expect "after the tag" "${VERSION}-dev+$(in_copy rev-parse --short=12 HEAD)"
refuse "after the tag" "${VERSION}"
for wrong in 0.1.0 v0.1 v01.0.0 v0.1.0+1 'v0.1.0 v0.2.0'; do
	echo "${wrong}" >"${COPY}/VERSION"
	if "${COPY}/hack/version.sh" >/dev/null 2>&1; then
		echo "the file VERSION may hold ${wrong}" >&2
		status=1
	fi
done

TAGGED="$(git -C "${ROOT}" rev-parse --quiet --verify "refs/tags/${VERSION}^{commit}" || true)"
if [[ -n "${TAGGED}" && "${TAGGED}" != "$(git -C "${ROOT}" rev-parse HEAD)" ]]; then
	echo "${VERSION} is released: write the next version into the file VERSION, and run make generate." >&2
	status=1
fi
exit "${status}"
