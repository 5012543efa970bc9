#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Adds a child to a copy of the checkout as docs/architecture.md says, with docs/architecture/networkpolicy.patch. Fails when
# that edits more than five files by hand, when it does not build or its tests fail, and when one of the files can be left out
# without the compiler or a test noticing.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
readonly ROOT PATCH=docs/architecture/networkpolicy.patch MOST=5
COPY="$(mktemp -d)"
trap 'rm -rf "${COPY}"' EXIT

# The tests that notice what is missing, and those that show that the operator manages the child.
readonly NOTICE=(./pkg/fieldmanager/... ./pkg/inventory ./pkg/render ./pkg/writers)
readonly MANAGE='^(TestAnMCPServerGetsItsChildrenAndItsStatus|TestReadsAreThoseOfInformers|TestWritesArePreconditioned|TestReduce.*|TestDeletion.*)$'
# Objects that only a real API server can record: pkg/render/testdata/stored/README.md.
readonly RECORDED='^TestStoredByAPIServer$'

# The same sources give the same cache entries, whatever the name of the copy. Vet and debuggers have no use for it.
export GOFLAGS="-trimpath -tags=fieldsv1string,grpcnotrace -ldflags=-w -vet=off"
PARITY="${FREEHOLD_UPSTREAM:-${ROOT}/../shared/upstream}"
if [[ -d "${PARITY}" ]]; then
	export FREEHOLD_UPSTREAM="${PARITY}"
else
	PARITY=""
fi

"${ROOT}/hack/copy-tree.sh" "${COPY}"
cd "${COPY}"
if ! git apply --check "${PATCH}"; then
	cat >&2 <<-MESSAGE
		${PATCH} does not apply any more. Renew it:
		  git apply --3way ${PATCH}    # and repair what is left, until the tests pass
		  git diff HEAD -- pkg >/tmp/new-child.patch
		  git restore --staged --worktree pkg && mv /tmp/new-child.patch ${PATCH}
	MESSAGE
	exit 1
fi
git apply "${PATCH}"
files=()
while IFS= read -r file; do
	files+=("${file}")
done < <(git apply --numstat "${PATCH}" | cut -f3)
if ((${#files[@]} > MOST)); then
	printf '%d files are edited by hand for a new child, and at most %d should be:\n' "${#files[@]}" "${MOST}" >&2
	printf '  %s\n' ${files[@]+"${files[@]}"} >&2
	exit 1
fi

hack/update-manifests.sh >/dev/null
go run ./docs/derived README.md docs/{architecture,security}.md
go build ./...
go test -skip="${RECORDED}" "${NOTICE[@]}" ./docs/derived
go test -run="${MANAGE}" ./pkg/controller
go test -run='^(TestOperatorMayDoWhatItsWritersNeed|TestFieldManagersAreGuardedWhereverTheyWrite)$' ./deploy

status=0
for file in ${files[@]+"${files[@]}"}; do
	if [[ "${file}" == */differences.yaml && -z "${PARITY}" ]]; then
		echo "skipped: ${file}, because ToolHive's own files are not here (FREEHOLD_UPSTREAM)"
		continue
	fi
	git apply --reverse --include="${file}" "${PATCH}"
	if ! output="$(go build ./pkg/... 2>&1)"; then
		echo "${file}: the compiler: $(grep -m1 '\.go:' <<<"${output}")"
	elif ! output="$(go test -skip="${RECORDED}" "${NOTICE[@]}" 2>&1)"; then
		echo "${file}: $(sed -n 's/^--- FAIL: \([A-Za-z]*\) .*/\1/p' <<<"${output}" | paste -sd ' ' -)"
	else
		echo "${file} can be left out, and neither the compiler nor a test notices: write the test" >&2
		status=1
	fi
	git apply --include="${file}" "${PATCH}"
done
exit "${status}"
