#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian package with Prometheus and promtool, which the tests of deploy/monitoring need, and says so. What is
# there already stays as it is.
set -euo pipefail

if command -v promtool >/dev/null && command -v prometheus >/dev/null; then
	echo "Prometheus is installed."
	exit 0
fi
exec "$(dirname "${BASH_SOURCE[0]}")/install-packages.sh" "The suite of deploy/monitoring" prometheus
