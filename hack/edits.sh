#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# For verify-new-*.sh, which source it: makes the edits of a patch to a copy of the checkout, into which it changes, and shows that
# each of them is needed. It counts and leaves out no edit of apis/, which is what the others are made for.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
COPY="$(mktemp -d)"
trap 'rm -rf "${COPY}"' EXIT
# Objects that only a real API server can record: pkg/render/testdata/stored/README.md.
readonly RECORDED='^TestWhatIsAppliedIsWhatAnAPIServerStored$'

# The same sources give the same cache entries, whatever the name of the copy. Vet and debuggers have no use for it.
export GOFLAGS="-trimpath -tags=fieldsv1string,grpcnotrace -ldflags=-w -vet=off"
PARITY="${FREEHOLD_UPSTREAM:-${ROOT}/../shared/upstream}"
if [[ -d "${PARITY}" ]]; then
	export FREEHOLD_UPSTREAM="${PARITY}"
else
	PARITY=""
fi

# make_edits PATCH MOST: applies the patch, which edits at most so many files by hand.
make_edits() {
	"${ROOT}/hack/copy-tree.sh" "${COPY}"
	cd "${COPY}"
	if ! git apply --check "$1"; then
		cat >&2 <<-MESSAGE
			$1 does not apply any more. Renew it:
			  git apply --3way $1    # and repair what is left, until the tests pass
			  git diff HEAD -- apis pkg ':!*zz_generated*' >/tmp/renewed.patch
			  git restore --staged --worktree apis pkg && mv /tmp/renewed.patch $1    # and undo what generators wrote
		MESSAGE
		exit 1
	fi
	git apply "$1"
	files=()
	while IFS= read -r file; do
		files+=("${file}")
	done < <(git apply --numstat --exclude='apis/*' "$1" | cut -f3)
	if ((${#files[@]} > $2)); then
		printf '%d files are edited by hand, and at most %d should be:\n' "${#files[@]}" "$2" >&2
		printf '  %s\n' ${files[@]+"${files[@]}"} >&2
		exit 1
	fi
}

# leave_out_each PATCH PACKAGES...: fails when a file can be left out, and neither the compiler nor a test of the packages notices.
leave_out_each() {
	local patch="$1" status=0 file output
	shift
	for file in ${files[@]+"${files[@]}"}; do
		if [[ "${file}" == */differences.yaml && -z "${PARITY}" ]]; then
			echo "skipped: ${file}, because ToolHive's own files are not here (FREEHOLD_UPSTREAM)"
			continue
		fi
		git apply --reverse --include="${file}" "${patch}"
		if ! output="$(go build ./pkg/... 2>&1)"; then
			echo "${file}: the compiler: $(grep -m1 '\.go:' <<<"${output}")"
		elif ! output="$(go test -skip="${RECORDED}" "$@" 2>&1)"; then
			echo "${file}: $(sed -n 's/^--- FAIL: \([A-Za-z]*\) .*/\1/p' <<<"${output}" | paste -sd ' ' -)"
		else
			echo "${file} can be left out, and neither the compiler nor a test notices: write the test" >&2
			status=1
		fi
		git apply --include="${file}" "${patch}"
	done
	return "${status}"
}
