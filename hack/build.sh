#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the programs under cmd/ into a directory (_output/bin if none is given), as they are released: static,
# without paths of this machine, with their version. GOOS and GOARCH choose another platform. Further arguments name the programs
# to build, such as kubectl-freehold; without them all are built.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
OUT="${1:-${ROOT}/_output/bin}"
packages=()
for program in "${@:2}"; do packages+=("./cmd/${program}"); done
if ((${#packages[@]} == 0)); then packages=(./cmd/...); fi
variables="$("${ROOT}/hack/version.sh")" # not in eval's argument, where it could fail unnoticed
eval "${variables}"

mkdir -p "${OUT}"
OUT="$(cd "${OUT}" && pwd -P)" # go -C changes what a relative path means
# fieldsv1string lets the entries of managedFields, of which an informer holds thousands, share their memory.
# grpcnotrace leaves out gRPC's own web pages: their templates call methods by name, for which the linker would have to keep
# every method of every type, and the operator would be 80 % larger.
CGO_ENABLED=0 go -C "${ROOT}" build -trimpath -buildvcs=false -tags=fieldsv1string,grpcnotrace -ldflags="${LDFLAGS}" -o "${OUT}/" \
	${packages[@]+"${packages[@]}"}
