#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that a real node of the local cluster needs (make run NODE=real, make e2e), and says
# which. What is there already stays as it is. Services that the packages would start are not started: the node runs
# its own. It needs root, and Debian or Ubuntu.
set -euo pipefail

# program: package that has it
declare -A PACKAGES=(
	[containerd]=containerd [ctr]=containerd [containerd-shim-runc-v2]=containerd [runc]=runc
	[nft]=nftables [ip]=iproute2
)

missing=()
for program in "${!PACKAGES[@]}"; do
	PATH="${PATH}:/usr/sbin:/sbin" command -v "${program}" >/dev/null || missing+=("${PACKAGES[${program}]}")
done
for plugin in ptp host-local loopback; do
	[[ -x "/usr/lib/cni/${plugin}" || -x "/opt/cni/bin/${plugin}" ]] || missing+=(containernetworking-plugins)
done
if ((${#missing[@]} == 0)); then
	echo "Everything that a real node needs is installed."
	exit 0
fi
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

if ! command -v apt-get >/dev/null; then
	echo "There is no apt-get here. A real node needs: ${missing[*]}" >&2
	exit 1
fi
if ((EUID != 0)); then
	echo "This needs root, to install: ${missing[*]}" >&2
	exit 1
fi

echo "Installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# Debian asks this program before it starts a service; 101 is no. One that is there already is not ours to change.
readonly POLICY=/usr/sbin/policy-rc.d
if [[ ! -e "${POLICY}" ]]; then
	trap 'rm -f "${POLICY}"' EXIT
	printf '#!/bin/sh\nexit 101\n' >"${POLICY}"
	chmod 755 "${POLICY}"
fi
apt-get update --quiet=2
apt-get install --quiet=2 --yes --no-install-recommends "${missing[@]}"
echo "Installed."
