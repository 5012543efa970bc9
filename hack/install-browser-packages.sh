#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages with a browser that works without a screen, and with what reads the PDFs that it prints, for the tests
# of the page that kubectl freehold owners writes, and says so. What is there already stays as it is.
set -euo pipefail

missing=()
command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || missing+=(chromium-headless-shell)
command -v pdftotext >/dev/null || missing+=(poppler-utils)
if ((${#missing[@]} == 0)); then
	echo "A browser is installed."
	exit 0
fi
if [[ "${missing[0]}" == chromium-headless-shell ]] && command -v apt-cache >/dev/null &&
	! apt-cache show chromium-headless-shell >/dev/null 2>&1; then
	missing[0]=chromium # Older distributions have it in one package.
fi
exec "$(dirname "${BASH_SOURCE[0]}")/install-packages.sh" "The suite of the page of owners" ${missing[@]+"${missing[@]}"}
