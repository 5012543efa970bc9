#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Writes the rules about the children into the ClusterRole and the policies of deploy/, and renders deploy/ with kustomize:
# install.yaml and install-without-crd.yaml for users, and the overlays under deploy/testdata for the tests.
# With an argument, renders those of that copy of the tree (hack/verify-manifests.sh does).
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
OUT="${1:-${ROOT}}"
KUSTOMIZE="$(go -C "${ROOT}/hack/tools/kustomize" tool -n kustomize)"

# render DIRECTORY FILE, both below deploy/.
render() {
	local rendered
	rendered="$("${KUSTOMIZE}" build "${OUT}/deploy/$1")"
	{
		echo "# Rendered from deploy/${1#.} by hack/update-manifests.sh: edit that, not this."
		printf '%s\n' "${rendered}"
	} >"${OUT}/deploy/$2"
	echo "deploy/$2"
}

go -C "${ROOT}" run ./docs/derived "${OUT}"/deploy/operator/access/clusterrole.yaml \
	"${OUT}"/deploy/policy/{field-managers,owned-fields}.yaml
render . install.yaml
render operator install-without-crd.yaml
for overlay in "${OUT}"/deploy/testdata/*/kustomization.yaml; do
	name="$(basename "$(dirname "${overlay}")")"
	render "testdata/${name}" "testdata/${name}/rendered.yaml"
done
