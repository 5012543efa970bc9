#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes what parses text that others write: runs each target of the operator's module, one after the other, each for FUZZTIME
# (30s unless set), and sums up. Arguments select targets: hack/fuzz.sh FuzzRepair FuzzEdits. GOTESTFLAGS adds flags to go test,
# such as GOTESTFLAGS=-parallel=1.
#
# Go writes an input that fails to testdata/fuzz/TARGET of its package. Keep it there, under a name that says what it is: go test
# runs it from then on, and so does CI. Inputs that only reach other code are in Go's cache; go clean -fuzzcache removes them.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
# The operator is released with these tags (see hack/build.sh).
TAGS=-tags=fieldsv1string,grpcnotrace
read -r -a EXTRA <<<"${GOTESTFLAGS:-}"
OUTPUT="$(mktemp)"
trap 'rm -f "${OUTPUT}"' EXIT
summary=()
failed=0

while IFS=: read -r file declared; do
	target="$(sed -E 's/^func (Fuzz[A-Za-z0-9_]*).*/\1/' <<<"${declared}")"
	if (($# > 0)) && [[ " $* " != *" ${target} "* ]]; then
		continue
	fi
	package="./$(dirname "${file}")"
	printf '\n==> %s of %s\n' "${target}" "${package}"
	result=ok
	# Coverage differs from run to run, so Go would take a minute to shorten each input that reaches other code.
	if ! go test "${TAGS}" -run='^$' -fuzz="^${target}\$" -fuzztime="${FUZZTIME:-30s}" -fuzzminimizetime=2s ${EXTRA[@]+"${EXTRA[@]}"} \
		"${package}" 2>&1 | tee "${OUTPUT}"; then
		result=FAIL
		failed=1
	fi
	executions="$(sed -nE 's/.*execs: ([0-9]+).*/\1/p' "${OUTPUT}" | tail -n1)"
	summary+=("$(printf '%-5s%-28s%12s executions  %s' "${result}" "${target}" "${executions:-no}" "${package}")")
done < <(git grep --untracked '^func Fuzz' -- {apis,cmd,deploy,internal,pkg}/'*_test.go' | sort)

if ((${#summary[@]} == 0)); then
	echo "there is no such target: $*" >&2
	exit 2
fi
printf '\n==> Summary\n'
printf '%s\n' ${summary[@]+"${summary[@]}"}
exit "${failed}"
