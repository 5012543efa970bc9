#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Generates everything that is derived from apis/: deepcopy functions, OpenAPI models, apply
# configurations, clientset, listers, informers, and the CRDs with their kustomization; and, from
# client-go, the schema of the built-in kinds that the operator writes.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
OUT="${1:-${ROOT}}" # hack/verify-codegen.sh generates into a copy of the tree
CACHE="${FREEHOLD_CACHE:-${XDG_CACHE_HOME:-${HOME}/.cache}/freehold}"
TOOLS="${OUT}/hack/tools/codegen"
MODULE=github.com/freehold-dev/freehold
BOILERPLATE="${OUT}/hack/boilerplate.go.txt"

cd "${OUT}"
# Where a module is says go list only of one that has been downloaded.
(cd "${TOOLS}" && go mod download k8s.io/code-generator)
CODEGEN="$(cd "${TOOLS}" && go list -m -f '{{.Dir}}' k8s.io/code-generator)"
# Where kube_codegen.sh installs its generators; not the user's own GOBIN.
GOBIN="${CACHE}/bin/codegen-$(basename "${CODEGEN#*@}")"
export GOBIN
mkdir -p "${GOBIN}"
# shellcheck source=/dev/null
source "${CODEGEN}/kube_codegen.sh"

kube::codegen::gen_helpers --boilerplate "${BOILERPLATE}" "${OUT}/apis"

kube::codegen::gen_openapi \
	--boilerplate "${BOILERPLATE}" \
	--output-dir "${OUT}/generated/openapi" \
	--output-pkg "${MODULE}/generated/openapi" \
	--report-filename "${OUT}/hack/tools/codegen/api-violations.list" \
	--update-report \
	"${OUT}/apis"

MODELS="$(mktemp)"
trap 'rm -f "${MODELS}"' EXIT
(cd "${TOOLS}" && go run ./modelsschema) >"${MODELS}"

kube::codegen::gen_client \
	--boilerplate "${BOILERPLATE}" \
	--output-dir "${OUT}/generated" \
	--output-pkg "${MODULE}/generated" \
	--with-applyconfig \
	--applyconfig-openapi-schema "${MODELS}" \
	--with-watch \
	"${OUT}/apis"

echo "Generating the schema of the built-in kinds"
(cd "${TOOLS}" && go run ./kindschema "${BOILERPLATE}" "${OUT}/generated/schema/zz_generated.schema.go")

echo "Generating the CRD"
(cd "${TOOLS}" && go build -o "${GOBIN}/controller-gen" sigs.k8s.io/controller-tools/cmd/controller-gen)
"${GOBIN}/controller-gen" crd paths=./apis/... output:crd:dir=deploy/crd
{
	printf '%s\n' "apiVersion: kustomize.config.k8s.io/v1beta1" "kind: Kustomization" "resources:"
	(cd deploy/crd && printf -- '- %s\n' toolhive.stacklok.dev_*.yaml)
} >deploy/crd/kustomization.yaml
