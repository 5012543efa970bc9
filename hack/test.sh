#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs tests and sums them up. Arguments say which, in this order; every one is run even when one before it fails:
#
#   unit     the operator's module
#   tools    the local cluster and the other tools under hack/
#   cluster  the suites in test/, on a real API server
#
# A skipped test is listed with its reason. GOTESTFLAGS adds flags to go test, such as GOTESTFLAGS=-run=TestParity.
set -uo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
# The operator is released with this tag (see hack/build.sh), so it is tested with it.
TAGS=-tags=fieldsv1string
read -r -a EXTRA <<<"${GOTESTFLAGS:-}"
WORK="$(mktemp -d)"
trap 'rm -rf "${WORK}"' EXIT
failed=()

go -C "${ROOT}/hack/tools/testreport" build -o "${WORK}/testreport" . || exit 1

# The race detector needs a C compiler.
RACE=()
if [[ "$(go env CGO_ENABLED)" == 1 ]] && command -v "$(go env CC)" >/dev/null; then
	RACE=(-race)
fi

# run MODULE FLAGS...: tests the packages of a module.
run() {
	local module="$1"
	shift
	printf '\n==> go test in %s\n' "${module}" | tee -a "${WORK}/summary"
	go -C "${ROOT}/${module}" test -json "$@" ${EXTRA[@]+"${EXTRA[@]}"} ./... 2>&1 |
		"${WORK}/testreport" -summary="${WORK}/summary" || failed+=("${module}")
}

# build_control_plane builds what is missing of it before the tests do, as here one sees how far that has come.
build_control_plane() {
	if [[ -z "${control_plane:-}" ]]; then
		printf '\n==> control plane\n'
		go -C "${ROOT}/hack" run ./cmd/localcluster build || exit 1
		control_plane=built
	fi
}

for part in "${@:?say which tests: unit, tools, cluster}"; do
	case "${part}" in
	unit)
		if ((${#RACE[@]} == 0)); then
			echo "No C compiler, or CGO_ENABLED=0: the unit tests run without the race detector."
		fi
		run . "${TAGS}" ${RACE[@]+"${RACE[@]}"}
		;;
	tools)
		build_control_plane
		run hack
		run hack/tools/image
		run hack/tools/testreport
		;;
	cluster)
		build_control_plane
		# Never from Go's cache: what is tested is outside of the test's binary.
		run test "${TAGS}" -count=1 -timeout=45m
		;;
	*)
		echo "unknown tests: ${part}" >&2
		exit 2
		;;
	esac
done

printf '\n==> Summary\n'
cat "${WORK}/summary"
if ((${#failed[@]} > 0)); then
	printf 'Tests failed in: %s\n' "${failed[*]}"
	exit 1
fi
echo "All tests passed."
