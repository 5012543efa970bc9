#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Has krew judge the plugin of a release, given as its directory: krew's own tool validates the manifest, and krew installs the
# archive of each platform as it would there, without downloading it. Both are built from krew's module.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
RELEASE="$(cd "$1" && pwd -P)"
MANIFEST="${RELEASE}/freehold.yaml"
VALIDATE="$(go -C "${ROOT}/hack/tools/krew" tool -n validate-krew-manifest)"
KREW="$(go -C "${ROOT}/hack/tools/krew" tool -n krew)"
WORK="$(mktemp -d)"
trap 'rm -rf "${WORK}"' EXIT

# quietly COMMAND...: runs it, and shows what it prints only where it fails.
quietly() {
	if ! "$@" >"${WORK}/log" 2>&1; then
		cat "${WORK}/log" >&2
		return 1
	fi
}

# What this tool would install itself it would download: that is done below.
quietly "${VALIDATE}" -manifest="${MANIFEST}" -skip-install

export KREW_NO_UPGRADE_CHECK=1
platforms=0
for archive in "${RELEASE}"/kubectl-freehold_*.tar.gz; do
	name="${archive##*/}"
	name="${name%.tar.gz}"
	export KREW_ARCH="${name##*_}"
	name="${name%_*}"
	export KREW_OS="${name##*_}" KREW_ROOT="${WORK}/${platforms}"
	quietly "${KREW}" install --manifest="${MANIFEST}" --archive="${archive}"
	installed="$(find "${KREW_ROOT}/store/freehold" -type f -exec basename '{}' ';' | LC_ALL=C sort | paste -sd ' ' -)"
	programs="kubectl-freehold kubectl_complete-freehold"
	if [[ "${KREW_OS}" == windows ]]; then programs=kubectl-freehold.exe; fi
	if [[ "${installed}" != "LICENSE THIRD_PARTY_LICENCES.md ${programs}" ]]; then
		echo "krew installs on ${KREW_OS}/${KREW_ARCH}: ${installed}" >&2
		exit 1
	fi
	platforms=$((platforms + 1))
done
entries="$(grep -c '^    sha256: ' "${MANIFEST}")"
if ((platforms != entries)); then
	echo "There are ${platforms} archives of the plugin, and the manifest has ${entries}." >&2
	exit 1
fi
echo "krew accepts the manifest, and installs the plugin on ${platforms} platforms."
