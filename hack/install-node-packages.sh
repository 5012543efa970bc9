#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that a real node of the local cluster needs (make run NODE=real, make e2e), and says
# which. What is there already stays as it is.
set -euo pipefail

missing=()
# A program, and the package that has it.
while read -r program package; do
	PATH="${PATH}:/usr/sbin:/sbin" command -v "${program}" >/dev/null || missing+=("${package}")
done <<PROGRAMS
containerd containerd
ctr containerd
containerd-shim-runc-v2 containerd
runc runc
nft nftables
ip iproute2
PROGRAMS
for plugin in ptp host-local loopback; do
	[[ -x "/usr/lib/cni/${plugin}" || -x "/opt/cni/bin/${plugin}" ]] || missing+=(containernetworking-plugins)
done
if ((${#missing[@]} == 0)); then
	echo "Everything that a real node needs is installed."
	exit 0
fi
# apt-get takes a package that is named twice for one.
exec "$(dirname "${BASH_SOURCE[0]}")/install-packages.sh" "A real node" ${missing[@]+"${missing[@]}"}
