#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the operator's image for every platform without a daemon, a base image or a registry, into a directory
# (_output/image if none is given):
#
#   oci/                      OCI layout with an index of all platforms
#   freehold-linux-<arch>.tar for docker load, podman load, ctr images import
#   digest                    the index's digest, which the same source always gives
#
# Its name and tag are those that deploy/install.yaml has. What is in it tells the commit: freehold --version, and the labels.
# PLATFORMS selects some; BINARIES is a directory to keep the programs in.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
OUT="${1:-${ROOT}/_output/image}"
PLATFORMS="${PLATFORMS:-linux/amd64 linux/arm64}"
variables="$("${ROOT}/hack/version.sh")" # not in eval's argument, where it could fail unnoticed
eval "${variables}"

WORK="$(mktemp -d)"
trap 'rm -rf "${WORK}"' EXIT
BINARIES="${BINARIES:-${WORK}}"

programs=()
for platform in ${PLATFORMS}; do
	GOOS="${platform%/*}" GOARCH="${platform#*/}" "${ROOT}/hack/build.sh" "${BINARIES}/${platform}" freehold
	programs+=("${platform}=${BINARIES}/${platform}/freehold")
done

mkdir -p "${OUT}"
OUT="$(cd "${OUT}" && pwd -P)"
rm -rf "${OUT}/oci" "${OUT}/digest" "${OUT}"/freehold-*.tar
# From here, so that a GOOS or GOARCH of the caller does not reach the program that packs.
TOOL="${WORK}/image"
env -u GOOS -u GOARCH go -C "${ROOT}/hack/tools/image" build -o "${TOOL}" .
"${TOOL}" -name="${IMAGE}" -tag="${VERSION}" -version="${BUILD_VERSION}" -revision="${COMMIT}" -created="${SOURCE_EPOCH}" \
	-include="${ROOT}/LICENSE" -include="${ROOT}/THIRD_PARTY_LICENCES.md" -out="${OUT}" ${programs[@]+"${programs[@]}"}
