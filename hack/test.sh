#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs tests and sums them up. Arguments say which, in this order; every one is run even when one before it fails:
#
#   unit     the operator's module, and its controller once more with other words in every status
#   simulation  the operator in a simulated cluster, from a seed of the day
#   tools    the local cluster and the other tools under hack/
#   cluster  the suites in test/, on a real API server; test/README.md says how to run one of them alone
#   node     the real node of the local cluster, and the suites in test/node and test/takeover that run on it (Linux and
#            root; see hack/install-node-packages.sh)
#   toolhive a part of these suites with the release of ToolHive that FREEHOLD_TOOLHIVE names; not in CI, as it builds
#            that release
#   peer     ToolHive's own scenarios about MCPServers, in test/chainsaw; not in CI, as it downloads ToolHive's module
#   kubernetes a part of the suites of cluster on the release of Kubernetes that FREEHOLD_KUBERNETES names; not in CI, as it
#            builds that release
#
# Of simulation, cluster and node, the long tests and cases take turns by the day: FREEHOLD_SEED=20261122 repeats that day, and
# FREEHOLD_WHOLE=true runs all of them.
#
# FREEHOLD_SUMMARY names a file to which the summary is added, as .ci/run prints those of several runs together.
#
# A skipped test is listed with its reason. GOTESTFLAGS adds flags to go test, such as GOTESTFLAGS=-run=TestParity.
set -uo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
# The operator is released with these tags (see hack/build.sh), so it is tested with them.
TAGS=-tags=fieldsv1string,grpcnotrace
read -r -a EXTRA <<<"${GOTESTFLAGS:-}"
WORK="$(mktemp -d)"
trap 'rm -rf "${WORK}"' EXIT
failed=()
# One build of the operator and of the plugin serves all suites.
export FREEHOLD_PROGRAMS="${FREEHOLD_PROGRAMS:-${WORK}/programs}"

# As the release is built. What the race detector compiles is apart in any case.
export CGO_ENABLED="${CGO_ENABLED:-0}"

go -C "${ROOT}/hack/tools/testreport" build -o "${WORK}/testreport" . || exit 1

# The suites are never taken from Go's cache: what they test is outside of their binaries.
SUITE=("${TAGS}" -count=1)
# Which long tests have their turn.
export FREEHOLD_SEED="${FREEHOLD_SEED:-$(date +%Y%m%d)}"
DAILY=("${SUITE[@]}" -short)
simulation_timeout=45m
if [[ "${FREEHOLD_WHOLE:-}" == true ]]; then
	DAILY=("${SUITE[@]}" -short=false)
	simulation_timeout=0
fi

# run MODULE FLAGS...: tests the packages of a module, all or those in packages. The binaries are large, and there are some hundred:
# they are linked without tables for debuggers, and without vet, which make verify runs.
packages=(./...)
run() {
	local module="$1" begin="${SECONDS}"
	shift
	printf '\n==> go test in %s\n' "${module}" | tee -a "${WORK}/summary"
	go -C "${ROOT}/${module}" test -json -ldflags=-w -vet=off "$@" ${EXTRA[@]+"${EXTRA[@]}"} ${packages[@]+"${packages[@]}"} 2>&1 |
		"${WORK}/testreport" -summary="${WORK}/summary" || failed+=("${module}")
	took "go test in ${module}" "${begin}"
}

# took WHAT BEGIN: notes how long it took, which the summary tells.
took() {
	printf '%5d s  %s\n' "$((SECONDS - $2))" "$1" >>"${WORK}/times"
}

# packages_of MODULE: those of a module that run in CI and need no real node.
packages_of() {
	local package
	packages=()
	while IFS= read -r package; do
		packages+=("${package}")
	done < <(go -C "${ROOT}/$1" list ./... | grep -vE '/(hack/node|test/node|test/takeover|test/chainsaw)$')
}

# tests_in PREFIX...: an expression for the tests in those files of test/cluster whose paths begin with a prefix.
tests_in() {
	local prefix
	for prefix in "$@"; do
		sed -nE 's/^func (Test[A-Za-z0-9]+)\(.*/^\1$/p' "${ROOT}/test/cluster/${prefix}"_*.go
	done | paste -sd'|' -
}

# build_control_plane NODES FLAGS... builds what is missing of it, and of its fake or real nodes, before the tests do, as
# here one sees how far that has come.
build_control_plane() {
	if [[ " ${built_for:-} " != *" $* "* ]]; then
		printf '\n==> control plane for nodes: %s\n' "$*"
		local begin="${SECONDS}"
		go -C "${ROOT}/hack" run ./cmd/localcluster build --node "$@" || exit 1
		took "control plane for nodes: $*" "${begin}"
		built_for+=" $*"
	fi
}

if (($# == 0)); then
	echo "say which tests: unit, simulation, tools, cluster, node, toolhive, peer, kubernetes" >&2
	exit 2
fi
for part in "$@"; do
	case "${part}" in
	unit)
		if command -v "$(go env CC)" >/dev/null; then
			CGO_ENABLED=1 run . "${TAGS}" -race
		else
			echo "No C compiler, which the race detector needs: the unit tests run without it."
			run . "${TAGS}"
		fi
		# Once more with other words in every status: nothing may be decided from them.
		packages=(./pkg/controller)
		run . "${TAGS},reworded"
		packages=(./...)
		;;
	simulation)
		echo "The simulation begins with seed ${FREEHOLD_SEED}."
		# The scenarios once more with other words in every status and event: nothing may be decided from them.
		run test/simulation "${TAGS},reworded" -count=1 -run='^TestHistories$'
		run test/simulation "${DAILY[@]}" -timeout="${simulation_timeout}" -seed="${FREEHOLD_SEED}" -for="${FREEHOLD_SIMULATE_FOR:-40s}"
		;;
	tools)
		build_control_plane fake
		packages_of hack
		run hack
		packages=(./...)
		run hack/images/mcp
		run hack/tools/image
		run hack/tools/licences
		run hack/tools/promql
		run hack/tools/release
		run hack/tools/structure
		run hack/tools/testreport
		run hack/tools/upstreamdiff
		run hack/tools/vulnerabilities
		;;
	cluster)
		# With the controllers of two versions of Kubernetes, as rollouts are told the same for both.
		build_control_plane fake --earlier-controllers
		packages_of test
		# The slowest first: begun last, they would leave processors idle at the end.
		packages=(./documents ./cluster/behaviour ./cluster/input ./plugin ./cluster/takeover ./upgrade ${packages[@]+"${packages[@]}"})
		# Each has a control plane of its own, and three of them keep two processors busy: four take no less time in all.
		run test "${DAILY[@]}" -p=3 -timeout=45m
		packages=(./...)
		run test/tools "${DAILY[@]}"
		;;
	node)
		# A machine that cannot run a node fails the suites, unless FREEHOLD_NODE says otherwise.
		export FREEHOLD_NODE="${FREEHOLD_NODE:-required}"
		build_control_plane real
		packages=(./node)
		run hack -count=1
		# One after the other: two nodes at once take all of two slow processors, and then kubelets restart what starts too slowly.
		packages=(./node ./takeover)
		run test "${DAILY[@]}" -p=1 -timeout=45m
		packages=(./...)
		;;
	toolhive)
		: "${FREEHOLD_TOOLHIVE:?say which release of ToolHive, such as v0.44.0}"
		export FREEHOLD_NODE="${FREEHOLD_NODE:-required}"
		build_control_plane real
		# What depends on ToolHive's programs: they serve, they are kept from writing, they attach again, they do what an
		# MCPServer refers to, they are succeeded.
		packages=(./node ./takeover)
		run test "${SUITE[@]}" -p=1 -timeout=45m \
			-run='^TestTransports$|^TestFence|^TestRunnerRole$|^TestRecovery$/^stdio$|^TestTokens$|^TestPolicyEdit$|^TestToolConfig$|^TestListsOfServersThatCompressAreFiltered$|^TestTokenExchange$|^TestTelemetry$|^TestWebhooks$|^TestWebhookThatCannotBeAskedDenies$|^TestTakeover$|^TestHandback$|^TestBothOperators$|^TestVirtualMCPServer$'
		packages=(./...)
		;;
	peer)
		build_control_plane fake
		packages=(./chainsaw)
		run test "${SUITE[@]}" -timeout=45m
		packages=(./...)
		;;
	kubernetes)
		: "${FREEHOLD_KUBERNETES:?say which release of Kubernetes, such as v1.34.4}"
		build_control_plane fake
		# What an API server decides: defaults, ownership, conflicts, validation, policies, and what its controllers do.
		packages=(./cluster/behaviour ./cluster/input ./cluster/takeover)
		run test "${SUITE[@]}" -p=1 -timeout=45m -skip="$(tests_in behaviour/ondelete input/references input/configs)"
		packages=(./...)
		;;
	*)
		echo "unknown tests: ${part}" >&2
		exit 2
		;;
	esac
done

printf '\n==> Summary\n'
tee -a "${FREEHOLD_SUMMARY:-/dev/null}" <"${WORK}/summary"
printf '\n==> Time taken\n'
cat "${WORK}/times"
if ((${#failed[@]} > 0)); then
	echo "Tests failed in:" ${failed[@]+"${failed[@]}"}
	exit 1
fi
echo "All tests passed."
