#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs every hack/verify-*.sh, two at a time, and lists the ones that failed. Each of them runs alone as well.
# With arguments, runs only those: hack/verify-all.sh gofmt tidy
set -uo pipefail

HACK="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
WORK="$(mktemp -d)"
trap 'rm -rf "${WORK}"' EXIT
export WORK

scripts=()
if (($# > 0)); then
	for name in "$@"; do scripts+=("${HACK}/verify-${name}.sh"); done
else
	# The one that takes longest begins.
	scripts+=("${HACK}/verify-lint.sh")
	for script in "${HACK}"/verify-*.sh; do
		if [[ "${script}" != */verify-all.sh && "${script}" != */verify-lint.sh ]]; then scripts+=("${script}"); fi
	done
fi

# check SCRIPT: runs it, and tells how that went when it is done.
check() {
	local name begin="${SECONDS}" output
	name="$(basename "$1" .sh)"
	if output="$("$1" 2>&1)"; then
		printf 'ok    %-22s %4d s\n' "${name}" "$((SECONDS - begin))"
		# A check says so where it leaves a part of itself out.
		grep '^skipped: ' <<<"${output}" | sed 's/^/      /' || true
	else
		printf 'FAIL  %-22s %4d s\n' "${name}" "$((SECONDS - begin))"
		sed 's/^/      /' <<<"${output}"
		echo "${name}" >>"${WORK}/failed"
	fi >"${WORK}/${name}"
	cat "${WORK}/${name}"
}
export -f check
# Half of what they do, such as linking, keeps one processor busy.
# shellcheck disable=SC2016 # The shell that xargs starts expands it.
printf '%s\0' ${scripts[@]+"${scripts[@]}"} | xargs -0 -n 1 -P 2 bash -c 'check "$1"' check

if [[ -e "${WORK}/failed" ]]; then
	printf '\n%d of %d checks failed:\n' "$(wc -l <"${WORK}/failed")" "${#scripts[@]}"
	sed 's|.*|  hack/&.sh|' "${WORK}/failed"
	exit 1
fi
echo "All ${#scripts[@]} checks passed."
