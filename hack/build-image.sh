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
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
OUT="${1:-${ROOT}/_output/image}"
IMAGE="${IMAGE:-ghcr.io/freehold-dev/freehold}"
PLATFORMS="${PLATFORMS:-linux/amd64 linux/arm64}"
eval "$("${ROOT}/hack/version.sh")"

BINARIES="$(mktemp -d)"
trap 'rm -rf "${BINARIES}"' EXIT

programs=()
for platform in ${PLATFORMS}; do
	GOOS="${platform%/*}" GOARCH="${platform#*/}" "${ROOT}/hack/build.sh" "${BINARIES}/${platform}"
	programs+=("${platform}=${BINARIES}/${platform}/freehold")
done

mkdir -p "${OUT}"
OUT="$(cd "${OUT}" && pwd -P)"
rm -rf "${OUT}/oci" "${OUT}/digest" "${OUT}"/freehold-*.tar
# From here, so that a GOOS or GOARCH of the caller does not reach the program that packs.
TOOL="${BINARIES}/image"
env -u GOOS -u GOARCH go -C "${ROOT}/hack/tools/image" build -o "${TOOL}" .
"${TOOL}" -name="${IMAGE}" -tag="${VERSION//+/-}" -revision="${COMMIT}" -created="${SOURCE_EPOCH}" \
	-license="${ROOT}/LICENSE" -out="${OUT}" ${programs[@]+"${programs[@]}"}
