#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Writes the rules about the children into the ClusterRole and the policies of deploy/, and the version in the file VERSION into
# the name of the operator's image and into the chart. Then renders deploy/ with kustomize: install.yaml, install-without-crd.yaml and
# install-namespaced.yaml for users, and the overlays under deploy/testdata for the tests.
# With an argument, renders those of that copy of the tree (hack/verify-manifests.sh does).
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
OUT="${1:-${ROOT}}"
KUSTOMIZE="$(go -C "${ROOT}/hack/tools/kustomize" tool -n kustomize)"

# render DIRECTORY FILE [COMMENT...]: both are below deploy/, and each comment is a line at the top of the file.
render() {
	local from="$1" to="$2" rendered
	shift 2
	rendered="$("${KUSTOMIZE}" build "${OUT}/deploy/${from}")"
	{
		echo "# Rendered from deploy/${from#.} by hack/update-manifests.sh: edit that, not this."
		(($# == 0)) || printf '# %s\n' "$@"
		printf '%s\n' "${rendered}"
	} >"${OUT}/deploy/${to}"
	echo "deploy/${to}"
}

go -C "${ROOT}" run ./docs/derived "${OUT}"/deploy/operator/access/clusterrole.yaml \
	"${OUT}"/deploy/policy/{field-managers,owned-fields}.yaml
IMAGES="${OUT}/deploy/operator/deployment/kustomization.yaml"
tagged="$(sed "s/^\( *newTag:\).*/\1 $(<"${OUT}/VERSION")/" "${IMAGES}")"
printf '%s\n' "${tagged}" >"${IMAGES}"

# The chart's versions, its image, and copies of what its templates read: Helm reads no file outside of a chart, and not every tool that
# fetches a chart keeps symbolic links.
CHART="${OUT}/deploy/chart"
version="$(<"${OUT}/VERSION")"
written="$(sed "s/^version:.*/version: ${version#v}/; s/^appVersion:.*/appVersion: ${version}/" "${CHART}/Chart.yaml")"
printf '%s\n' "${written}" >"${CHART}/Chart.yaml"
written="$(sed "s|^\( *image: ghcr.io/freehold-dev/freehold:\).*|\1${version}|" "${CHART}/values.yaml")"
printf '%s\n' "${written}" >"${CHART}/values.yaml"
rm -rf "${CHART}/files"
mkdir -p "${CHART}/files/crds"
cp "${OUT}"/deploy/operator/access/clusterrole.yaml "${OUT}"/deploy/operator/users/{view,edit}.yaml "${CHART}/files/"
cp "${OUT}"/deploy/crd/toolhive.stacklok.dev_*.yaml "${CHART}/files/crds/"
echo "deploy/chart"

render . install.yaml \
	"Never kubectl delete -f this: MCPServers would wait for an operator that is gone. See docs/uninstall.md." \
	"Where ToolHive's Helm chart or another tool has installed the CRDs, apply install-without-crd.yaml instead. See docs/migration.md."
render operator install-without-crd.yaml \
	"Before you kubectl delete -f this, read docs/uninstall.md: only a running operator releases MCPServers."
render namespaced install-namespaced.yaml \
	"For the one namespace mcp-servers, which has to exist, like the CRDs. deploy/namespaced/kustomization.yaml says how to name others." \
	"Before you kubectl delete -f this, read docs/uninstall.md: only a running operator releases MCPServers."
for overlay in "${OUT}"/deploy/testdata/*/kustomization.yaml; do
	name="$(basename "$(dirname "${overlay}")")"
	render "testdata/${name}" "testdata/${name}/rendered.yaml"
done
