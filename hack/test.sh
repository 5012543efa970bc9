#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs tests and sums them up. Arguments say which, in this order; every one is run even when one before it fails:
#
#   unit     the operator's module, and its controller once more with other words in every status
#   core     what make test runs besides: a share of the simulation, and the suites of what Freehold is for, on a real API server. It
#            is the same on every day.
#   race     with the race detector, what runs side by side in the operator
#   simulation  the operator in a simulated cluster, from a seed of the day
#   tools    the local cluster and the other tools under hack/
#   cluster  the suites in test/, on a real API server; test/README.md says how to run one of them alone
#   rest     those of them that core does not run
#   node     the real node of the local cluster, and the suites in test/node and test/takeover that run on it (Linux and
#            root; see hack/install-node-packages.sh)
#   toolhive a part of these suites with the release of ToolHive that FREEHOLD_TOOLHIVE names; not in CI, as it builds
#            that release
#   peer     ToolHive's own scenarios about MCPServers, in test/chainsaw; not in CI, as it downloads ToolHive's module
#   kubernetes a part of the suites of cluster on the release of Kubernetes that FREEHOLD_KUBERNETES names; not in CI, as it
#            builds that release
#
# Of simulation, cluster, rest and node, the long tests and cases take turns by the day: FREEHOLD_SEED=20261122 repeats that day, and
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
# Which long tests have their turn, and with which seed the properties begin; those of unit and core are the same on every day.
seed="${FREEHOLD_SEED:-$(date +%Y%m%d)}"
unset FREEHOLD_SEED
export RAPID_SEED=1
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

# core are the files of test/cluster whose tests make test runs: MCPServers are created, edited and deleted, what is lost comes back,
# what somebody else holds is told and settled, ToolHive's objects are taken over.
core=(behaviour/lifecycle_creation behaviour/lifecycle_edit behaviour/lifecycle_optional behaviour/lifecycle_truth
	behaviour/drift_deleted behaviour/drift_lost behaviour/conflicts_test behaviour/conflicts_commands takeover/takeover_test)

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
		sed -nE 's/^func (Test[A-Z][A-Za-z0-9]*)\(t \*testing\.T\).*/^\1$/p' "${ROOT}/test/cluster/${prefix}"*.go
	done | paste -sd'|' -
}

# not_core is an expression for the tests that rest leaves out. It fails if another suite of test/cluster has a test of such a name.
not_core() {
	local expression twice
	expression="$(tests_in "${core[@]}")"
	twice="$(find "${ROOT}/test" -name '*_test.go' | grep -vE '/test/(simulation|tools|node|takeover|chainsaw)/' |
		xargs sed -nE 's/^func (Test[A-Z][A-Za-z0-9]*)\(t .*/\1/p' | sort | uniq -d | grep -E "${expression}")"
	if [[ -n "${twice}" ]]; then
		echo "another suite has a test of the name of one that make test runs, and would not run it: ${twice}" >&2
		exit 1
	fi
	echo "${expression}"
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
	echo "say which tests: unit, core, race, simulation, tools, cluster, rest, node, toolhive, peer, kubernetes" >&2
	exit 2
fi
for part in "$@"; do
	case "${part}" in
	unit)
		run . "${TAGS}"
		# Once more with other words in every status: nothing may be decided from them.
		packages=(./pkg/controller)
		run . "${TAGS},reworded"
		packages=(./...)
		;;
	core)
		run test/simulation "${SUITE[@]}" -short -run='^Test(Histories|Crashes|TwoOperatorsComeToRest|AScenarioEndsAlikeInWhateverOrder|Stories|Outages|Handback)$|Oracle' -for=0
		build_control_plane fake
		packages=(./cluster/behaviour ./cluster/takeover)
		run test "${SUITE[@]}" -short -p=2 -run="$(tests_in "${core[@]}")"
		packages=(./...)
		;;
	race)
		if command -v "$(go env CC)" >/dev/null; then
			packages=(./cmd/freehold ./internal/apiserver ./pkg/apply/... ./pkg/controller/... ./pkg/configcontroller/... ./pkg/metrics/...
				./pkg/metricsserver/... ./pkg/passtrace ./pkg/priorityqueue ./pkg/turns ./pkg/writers)
			RAPID_SEED="${seed}" CGO_ENABLED=1 run . "${TAGS}" -race
			packages=(./...)
		else
			echo "No C compiler, which the race detector needs: it is left out."
		fi
		;;
	simulation)
		echo "The simulation begins with seed ${seed}."
		# The scenarios once more with other words in every status and event: nothing may be decided from them.
		run test/simulation "${TAGS},reworded" -count=1 -run='^TestHistories$'
		run test/simulation "${DAILY[@]}" -timeout="${simulation_timeout}" -seed="${seed}" -for="${FREEHOLD_SIMULATE_FOR:-40s}"
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
	cluster | rest)
		leave_out=()
		if [[ "${part}" == rest ]]; then
			leave_out=(-skip="$(not_core)") || exit 1
		fi
		# With the controllers of two versions of Kubernetes, as rollouts are told the same for both.
		build_control_plane fake --earlier-controllers
		packages_of test
		# The slowest first: begun last, they would leave processors idle at the end.
		packages=(./documents ./cluster/behaviour ./cluster/input ./plugin ./cluster/takeover ./upgrade ${packages[@]+"${packages[@]}"})
		# Each has a control plane of its own, and three of them keep two processors busy: four take no less time in all.
		RAPID_SEED="${seed}" FREEHOLD_SEED="${seed}" run test "${DAILY[@]}" -p=3 -timeout=45m ${leave_out[@]+"${leave_out[@]}"}
		packages=(./...)
		RAPID_SEED="${seed}" FREEHOLD_SEED="${seed}" run test/tools "${DAILY[@]}"
		;;
	node)
		# A machine that cannot run a node fails the suites, unless FREEHOLD_NODE says otherwise.
		export FREEHOLD_NODE="${FREEHOLD_NODE:-required}"
		build_control_plane real
		packages=(./node)
		run hack -count=1
		# One after the other: two nodes at once take all of two slow processors, and then kubelets restart what starts too slowly.
		packages=(./node ./takeover)
		RAPID_SEED="${seed}" FREEHOLD_SEED="${seed}" run test "${DAILY[@]}" -p=1 -timeout=45m
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
