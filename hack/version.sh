#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Prints what this source calls itself, as lines for a shell to evaluate:
#
#   VERSION       VERSION if set, else from the last tag, else v0.0.0 with the commit
#   COMMIT        the commit, or unknown outside of a git checkout
#   TREE_STATE    clean or dirty; unknown outside of a git checkout
#   SOURCE_EPOCH  seconds since 1970: SOURCE_DATE_EPOCH if set, else the commit's time, else 0
#   LDFLAGS       the same for the linker, as k8s.io/component-base/version wants it
#
# Nothing in here depends on the time or the place of the build: the same source gives the same binary.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

COMMIT=unknown TREE_STATE=unknown EPOCH=0 DESCRIPTION=v0.0.0
if git rev-parse --quiet --verify HEAD >/dev/null 2>&1; then
	COMMIT="$(git rev-parse HEAD)"
	EPOCH="$(git log -1 --format=%ct)"
	DESCRIPTION="$(git describe --tags --match='v[0-9]*' 2>/dev/null || echo "v0.0.0-${COMMIT:0:12}")"
	TREE_STATE=clean
	if [[ -n "$(git status --porcelain)" ]]; then
		TREE_STATE=dirty
		DESCRIPTION+=-dirty
	fi
fi
VERSION="${VERSION:-${DESCRIPTION}}"
EPOCH="${SOURCE_DATE_EPOCH:-${EPOCH}}"

# portable: GNU's date has -d for this, that of macOS and BSD -r
DATE="$(date -u -d "@${EPOCH}" +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || date -u -r "${EPOCH}" +%Y-%m-%dT%H:%M:%SZ)"
package=k8s.io/component-base/version
LDFLAGS="-s -w"
LDFLAGS+=" -X ${package}.gitVersion=${VERSION}"
LDFLAGS+=" -X ${package}.gitCommit=${COMMIT}"
LDFLAGS+=" -X ${package}.gitTreeState=${TREE_STATE}"
LDFLAGS+=" -X ${package}.buildDate=${DATE}"
if [[ "${VERSION}" =~ ^v([0-9]+)\.([0-9]+)\. ]]; then
	LDFLAGS+=" -X ${package}.gitMajor=${BASH_REMATCH[1]} -X ${package}.gitMinor=${BASH_REMATCH[2]}"
fi

printf '%s=%q\n' VERSION "${VERSION}" COMMIT "${COMMIT}" TREE_STATE "${TREE_STATE}" \
	SOURCE_EPOCH "${EPOCH}" LDFLAGS "${LDFLAGS}"
