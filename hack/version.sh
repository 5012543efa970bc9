#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Prints what this source calls itself, as lines for a shell to evaluate:
#
#   VERSION        what the file VERSION says: the release that this source is, or is to become. The image's tag, the
#                  manifests, the names of a release's files and krew's manifest have it.
#   BUILD_VERSION  what the programs call themselves: VERSION where the checkout is clean and at the tag of that name; elsewhere
#                  VERSION-dev+COMMIT, with -dirty at its end where something differs from the commit
#   IMAGE          the image's name, as the manifests have it: no tag
#   COMMIT         the commit, or unknown outside of a git checkout
#   TREE_STATE     clean or dirty; unknown outside of a git checkout
#   SOURCE_EPOCH   seconds since 1970: SOURCE_DATE_EPOCH if set, else the commit's time, else 0
#   LDFLAGS        the same for the linker, as k8s.io/component-base/version wants it
#
# Nothing in here depends on the time or the place of the build: the same source gives the same binary.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

VERSION="$(<VERSION)"
if ! [[ "${VERSION}" =~ ^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$ ]]; then
	echo "the file VERSION has to hold a version such as v1.2.3, and has ${VERSION}" >&2
	exit 1
fi
MAJOR="${BASH_REMATCH[1]}" MINOR="${BASH_REMATCH[2]}"
IMAGE="$(sed -n 's/^ *newName: //p' deploy/operator/deployment/kustomization.yaml)"

COMMIT=unknown TREE_STATE=unknown EPOCH=0
if git rev-parse --quiet --verify HEAD >/dev/null 2>&1; then
	COMMIT="$(git rev-parse HEAD)"
	EPOCH="$(git log -1 --format=%ct)"
	TREE_STATE=clean
	if [[ -n "$(git status --porcelain)" ]]; then TREE_STATE=dirty; fi
fi
BUILD_VERSION="${VERSION}-dev+${COMMIT:0:12}"
if [[ "${TREE_STATE}" == dirty ]]; then BUILD_VERSION+=-dirty; fi
if [[ "${TREE_STATE}" == clean ]] && git tag --points-at HEAD | grep -Fxq "${VERSION}"; then BUILD_VERSION="${VERSION}"; fi
EPOCH="${SOURCE_DATE_EPOCH:-${EPOCH}}"

# GNU's date has -d for this, that of macOS and BSD -r.
DATE="$(date -u -d "@${EPOCH}" +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || date -u -r "${EPOCH}" +%Y-%m-%dT%H:%M:%SZ)"
package=k8s.io/component-base/version
LDFLAGS="-s -w"
LDFLAGS+=" -X ${package}.gitVersion=${BUILD_VERSION}"
LDFLAGS+=" -X ${package}.gitCommit=${COMMIT}"
LDFLAGS+=" -X ${package}.gitTreeState=${TREE_STATE}"
LDFLAGS+=" -X ${package}.buildDate=${DATE}"
LDFLAGS+=" -X ${package}.gitMajor=${MAJOR} -X ${package}.gitMinor=${MINOR}"

printf '%s=%q\n' VERSION "${VERSION}" BUILD_VERSION "${BUILD_VERSION}" IMAGE "${IMAGE}" COMMIT "${COMMIT}" \
	TREE_STATE "${TREE_STATE}" SOURCE_EPOCH "${EPOCH}" LDFLAGS "${LDFLAGS}"
