#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian package with Prometheus and promtool, which the tests of deploy/monitoring need, and says so. What is
# there already stays as it is. The service that the package would start is not started. It needs root, and Debian or
# Ubuntu.
set -euo pipefail

if command -v promtool >/dev/null && command -v prometheus >/dev/null; then
	echo "Prometheus is installed."
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "There is no apt-get here. The tests of deploy/monitoring need prometheus and promtool on PATH." >&2
	exit 1
fi
if ((EUID != 0)); then
	echo "This needs root, to install: prometheus" >&2
	exit 1
fi

echo "Installing: prometheus"
export DEBIAN_FRONTEND=noninteractive
# Debian asks this program before it starts a service; 101 is no. One that is there already is not ours to change.
readonly POLICY=/usr/sbin/policy-rc.d
if [[ ! -e "${POLICY}" ]]; then
	trap 'rm -f "${POLICY}"' EXIT
	printf '#!/bin/sh\nexit 101\n' >"${POLICY}"
	chmod 755 "${POLICY}"
fi
apt-get update --quiet=2
apt-get install --quiet=2 --yes --no-install-recommends prometheus
echo "Installed."
