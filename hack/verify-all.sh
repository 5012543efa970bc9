#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs every hack/verify-*.sh and lists the ones that failed. Each of them runs alone as well.
# With arguments, runs only those: hack/verify-all.sh gofmt tidy
set -uo pipefail

HACK="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"

scripts=()
if (($# > 0)); then
	for name in "$@"; do scripts+=("${HACK}/verify-${name}.sh"); done
else
	for script in "${HACK}"/verify-*.sh; do
		if [[ "${script}" != */verify-all.sh ]]; then scripts+=("${script}"); fi
	done
fi

failed=()
for script in ${scripts[@]+"${scripts[@]}"}; do
	name="$(basename "${script}" .sh)"
	begin="${SECONDS}"
	if output="$("${script}" 2>&1)"; then
		printf 'ok    %-22s %4d s\n' "${name}" "$((SECONDS - begin))"
		# A check says so where it leaves a part of itself out.
		grep '^skipped: ' <<<"${output}" | sed 's/^/      /' || true
	else
		printf 'FAIL  %-22s %4d s\n' "${name}" "$((SECONDS - begin))"
		sed 's/^/      /' <<<"${output}"
		failed+=("${name}")
	fi
done

if ((${#failed[@]} > 0)); then
	printf '\n%d of %d checks failed:\n' "${#failed[@]}" "${#scripts[@]}"
	printf '  hack/%s.sh\n' ${failed[@]+"${failed[@]}"}
	exit 1
fi
echo "All ${#scripts[@]} checks passed."
