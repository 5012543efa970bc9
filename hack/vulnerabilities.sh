#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Looks with govulncheck for known vulnerabilities in what Freehold calls of its dependencies and of Go's standard library: in
# the modules given as directories, or else in the operator's and the plugin's. It fails with 1 where it finds one, and with 75
# where the database cannot be read: https://vuln.go.dev, or FREEHOLD_VULNERABILITIES, the URL of a copy (file:// as well).
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
DATABASE="${FREEHOLD_VULNERABILITIES:-https://vuln.go.dev}"
TOOL="${ROOT}/hack/tools/vulnerabilities"
if (($# == 0)); then set -- "${ROOT}"; fi

if ! why="$(go -C "${TOOL}" run . "${DATABASE}" 2>&1)"; then
	echo "skipped: govulncheck, because its database cannot be read: $(head -n 1 <<<"${why}")"
	exit 75
fi
GOVULNCHECK="$(go -C "${TOOL}" tool -n govulncheck)"
status=0
for module in "$@"; do
	# The operator is released with these tags (see hack/build.sh).
	"${GOVULNCHECK}" -C "${module}" -db "${DATABASE}" -tags fieldsv1string,grpcnotrace ./... || status=1
done
exit "${status}"
