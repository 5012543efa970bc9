#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs Debian packages, and says which. Services that they would start are not started. It needs root, and Debian or
# Ubuntu. Usage: install-packages.sh WHO PACKAGE..., where WHO is who needs them, for the message where it cannot.
set -euo pipefail

readonly WHO=${1:?who needs the packages}
shift

if ! command -v apt-get >/dev/null; then
	echo "There is no apt-get here. ${WHO} needs: $*" >&2
	exit 1
fi
if ((EUID != 0)); then
	echo "This needs root, to install: $*" >&2
	exit 1
fi

echo "Installing: $*"
export DEBIAN_FRONTEND=noninteractive
# Debian asks this program before it starts a service; 101 is no. One that is there already is not ours to change.
readonly POLICY=/usr/sbin/policy-rc.d
if [[ ! -e "${POLICY}" ]]; then
	trap 'rm -f "${POLICY}"' EXIT
	printf '#!/bin/sh\nexit 101\n' >"${POLICY}"
	chmod 755 "${POLICY}"
fi
apt-get update --quiet=2
apt-get install --quiet=2 --yes --no-install-recommends "$@"
echo "Installed."
