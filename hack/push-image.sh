#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Pushes the image of all platforms to a registry, without a daemon, and prints it with its digest. Arguments are the name that it
# gets there, such as registry.example.com/freehold, and the directory that hack/build-image.sh has written (_output/image if none
# is given). Its tag is the version in the file VERSION. Credentials are those of docker login or podman login; without either,
# go -C hack/tools/image tool crane auth login asks for them.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
TO="${1:?the name of the image in the registry, without a tag}"
FROM="${2:-${ROOT}/_output/image}"

if [[ ! -f "${FROM}/digest" ]]; then
	echo "${FROM} has no image: run make image" >&2
	exit 1
fi
if [[ "${TO##*/}" == *[:@]* ]]; then
	echo "${TO}: want no tag and no digest, the tag is that of the version" >&2
	exit 1
fi
CRANE="$(go -C "${ROOT}/hack/tools/image" tool -n crane)"
pushed="$("${CRANE}" push "${FROM}/oci" "${TO}:$(<"${ROOT}/VERSION")")"
if [[ "${pushed}" != *"@$(<"${FROM}/digest")" ]]; then
	echo "pushed ${pushed}, want $(<"${FROM}/digest")" >&2
	exit 1
fi
echo "${pushed}"
