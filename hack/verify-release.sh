#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Makes a release twice, from two copies of this tree in different places, and fails when the results differ, or when the image,
# the manifests, the programs and krew's manifest do not have the version in the file VERSION. The only platform is Linux on this
# machine's processor: each other one takes minutes to compile, and hack/tools/release tests how they are packed.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
WORK="$(mktemp -d)"
trap 'rm -rf "${WORK}"' EXIT

mkdir "${WORK}/tree"
"${ROOT}/hack/copy-tree.sh" "${WORK}/tree"
mkdir "${WORK}/elsewhere"
cp -R "${WORK}/tree" "${WORK}/elsewhere/copy" # not copied with its times: they must not matter

HOST="linux/$(go env GOHOSTARCH)"
export PLATFORMS="${HOST}" PLUGIN_PLATFORMS="${HOST}"
BINARIES="${WORK}/binaries" "${WORK}/tree/hack/release.sh" "${WORK}/first"
"${WORK}/elsewhere/copy/hack/release.sh" "${WORK}/second"

if ! diff -rq "${WORK}/first" "${WORK}/second"; then
	echo "Two builds of the same source gave two releases." >&2
	exit 1
fi

VERSION="$(<"${ROOT}/VERSION")"
DIGEST="$(<"${WORK}/first/digest")"
status=0

# want WHAT PATTERN FILE: a line of the file has to match.
want() {
	if ! grep -Eq -- "$2" "$3"; then
		echo "$1: nothing matches $2 in $(basename "$3")" >&2
		status=1
	fi
}

# The image that a manifest names is the one that is loaded from an archive; here by its tag, in a release by its digest, too.
NAME="$(sed -n 's/^ *image: \(.*\):v.*/\1/p' "${ROOT}/deploy/install.yaml")"
for manifest in install.yaml install-without-crd.yaml install-namespaced.yaml; do
	want "the image in the checkout" "^ +image: ${NAME}:${VERSION}\$" "${ROOT}/deploy/${manifest}"
	want "the image in the release" "^ +image: ${NAME}:${VERSION}@${DIGEST}\$" "${WORK}/first/${manifest}"
done
for archive in "${WORK}"/first/freehold-linux-*.tar; do
	tar -x -O -f "${archive}" manifest.json >"${WORK}/manifest.json"
	want "the tag in ${archive##*/}" "\"RepoTags\":\\[\"${NAME}:${VERSION}\"\\]" "${WORK}/manifest.json"
done
want "krew's manifest" "^  version: ${VERSION}\$" "${WORK}/first/freehold.yaml"

# The copy is no git checkout: the programs cannot tell a commit, and must not call themselves released.
if [[ "$(go env GOHOSTOS)" == linux ]]; then
	for program in freehold kubectl-freehold; do
		"${WORK}/binaries/${HOST}/${program}" --version >"${WORK}/version"
		want "${program} --version" "(^| )${VERSION}-dev\\+unknown\$" "${WORK}/version"
	done
else
	echo "skipped: what the programs call themselves, as these run on Linux alone"
fi

# The linker leaves out what is not called only as long as nothing calls methods by name, as templates do: then it would have 63 MB.
if (($(wc -c <"${WORK}/binaries/${HOST}/kubectl-freehold") > 45000000)); then
	echo "kubectl-freehold has more than 45 MB. Look for <ReflectMethod> in what go build -ldflags=-dumpdep prints." >&2
	status=1
fi

# krew has accepted the manifest: see hack/release.sh. It has to refuse one with another checksum.
cp -R "${WORK}/first" "${WORK}/tampered"
sed 's/^    sha256: ....../    sha256: 000000/' "${WORK}/first/freehold.yaml" >"${WORK}/tampered/freehold.yaml"
if "${ROOT}/hack/try-krew.sh" "${WORK}/tampered" 2>/dev/null; then
	echo "krew installs an archive that is not the manifest's." >&2
	status=1
fi

# What is already there is not a release: it is not to be taken away.
mkdir "${WORK}/mine"
touch "${WORK}/mine/work"
if "${WORK}/tree/hack/release.sh" "${WORK}/mine" 2>/dev/null || [[ ! -e "${WORK}/mine/work" ]]; then
	echo "hack/release.sh takes away a directory that is no release." >&2
	status=1
fi
((status == 0)) && echo "Both are ${DIGEST}."
exit "${status}"
