#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Makes all files of the release that the file VERSION names, without a daemon or a registry, into a directory
# (_output/release if none is given). The same source gives the same bytes, with the same Go:
#
#   oci/, freehold-linux-<arch>.tar, digest   the image, as hack/build-image.sh makes it
#   install*.yaml                             the manifests of deploy/, with the image by tag and digest
#   freehold-<version>.tgz                    the chart for Helm, with the image by tag and digest
#   kubectl-freehold_<version>_<os>_<arch>.tar.gz, freehold.yaml
#                                             the plugin, and its manifest for krew
#   *.spdx.json                               what is in each image and each archive, in SPDX 2.3
#   notes.md                                  what CHANGELOG.md says of the version
#   SHA256SUMS                                checksums of all files, but for those in oci/
#
# It publishes nothing. TAG says that this is to be published as that version: it fails unless the checkout is clean, and at the
# tag of that name, which the file VERSION has to name as well. Without TAG it is a rehearsal, and the files say so.
# PLATFORMS selects platforms of the image, PLUGIN_PLATFORMS those of the plugin; BINARIES is a directory to keep the programs in.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
OUT="${1:-${ROOT}/_output/release}"
PLUGIN_PLATFORMS="${PLUGIN_PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64}"
variables="$("${ROOT}/hack/version.sh")" # not in eval's argument, where it could fail unnoticed
eval "${variables}"

if [[ -n "${TAG:-}" && "${VERSION} ${BUILD_VERSION}" != "${TAG} ${TAG}" ]]; then
	echo "This is not ${TAG}: the file VERSION has ${VERSION}, and what is checked out is ${BUILD_VERSION}." >&2
	exit 1
fi
# The tool that writes the notes reads more of it; this fails before minutes of compiling.
if [[ -n "${TAG:-}" ]] && ! grep -q "^## ${TAG} - " "${ROOT}/CHANGELOG.md"; then
	echo "CHANGELOG.md has no section for ${TAG}: date it, such as ## ${TAG} - 2026-01-31" >&2
	exit 1
fi
# What is there is replaced, at the end, but only if it looks like a release.
if [[ -n "$(ls -A "${OUT}" 2>/dev/null)" && ! -f "${OUT}/SHA256SUMS" ]]; then
	echo "${OUT} holds something else than a release: empty it, or name another directory" >&2
	exit 1
fi

WORK="$(mktemp -d)"
trap 'rm -rf "${WORK}"' EXIT
export BINARIES="${BINARIES:-${WORK}/binaries}"
NEW="${WORK}/release"

"${ROOT}/hack/build-image.sh" "${NEW}" >/dev/null
for platform in ${PLUGIN_PLATFORMS}; do
	GOOS="${platform%/*}" GOARCH="${platform#*/}" "${ROOT}/hack/build.sh" "${BINARIES}/${platform}" kubectl-freehold
done
TOOL="${WORK}/tool"
env -u GOOS -u GOARCH go -C "${ROOT}/hack/tools/release" build -o "${TOOL}" .
read -r -a platforms <<<"${PLUGIN_PLATFORMS}"
"${TOOL}" -root="${ROOT}" -binaries="${BINARIES}" -out="${NEW}" -version="${VERSION}" -build-version="${BUILD_VERSION}" \
	-commit="${COMMIT}" -image="${IMAGE}" -created="${SOURCE_EPOCH}" ${platforms[@]+"${platforms[@]}"}
"${ROOT}/hack/try-krew.sh" "${NEW}"

mkdir -p "${OUT}"
rm -rf "${OUT}"
mv "${NEW}" "${OUT}"
if [[ "${BUILD_VERSION}" == "${VERSION}" ]]; then
	echo "${OUT} holds ${VERSION}."
else
	echo "${OUT} holds a rehearsal of ${VERSION}, built as ${BUILD_VERSION}."
fi
