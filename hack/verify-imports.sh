#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails when a package depends, however indirectly, on what it must not. .golangci.yml looks at direct imports
# and names the line; this looks at everything behind them.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly MODULE=github.com/freehold-dev/freehold
# What speaks to an API server. rest and kubernetes/scheme are not in here: client-go's apply configurations
# import them.
readonly CLIENTS='k8s\.io/client-go/(kubernetes$|(kubernetes/typed|dynamic|metadata|tools/cache|informers|listers)(/|$))|'"${MODULE}"'/generated/(clientset|informers|listers)(/|$)'

status=0

# refuse WHY PATTERN PACKAGES...: no dependency of the packages may match the pattern.
refuse() {
	local why="$1" pattern="$2" found
	shift 2
	if [[ -z "$(go list "$@")" ]]; then
		echo "no packages: $*" >&2
		status=1
		return
	fi
	found="$(go list -deps "$@" | grep -E "^(${pattern})" || true)"
	if [[ -n "${found}" ]]; then
		printf '%s: %s\n%s\n' "$*" "${why}" "${found}" >&2
		status=1
	fi
}

refuse "Freehold is built on client-go alone" 'sigs\.k8s\.io/controller-runtime(/|$)' -test ./...
refuse "the API types import apimachinery only" \
	"k8s\\.io/(api|client-go|apiserver|apiextensions-apiserver|component-base)(/|\$)|${MODULE}/(pkg|generated|cmd)/" ./apis/...
refuse "knows nothing of MCPServers" "${MODULE}/(apis|generated)(/|\$)" ./pkg/fieldmanager ./pkg/ownership/... ./pkg/apply/...
refuse "imports no client" "${CLIENTS}" ./pkg/fieldmanager/... ./pkg/ownership/... ./pkg/runconfig/... ./pkg/authserver ./pkg/configs ./pkg/render/... ./pkg/inventory/... ./pkg/workload ./pkg/rollout/... ./pkg/status/... ./pkg/fieldowners
refuse "is no command line tool" 'k8s\.io/cli-runtime(/|$)|'"${MODULE}"'/pkg/plugin(/|$)' ./cmd/freehold ./pkg/controller/...
refuse "has no API server in it" 'k8s\.io/apiserver(/|$)|go\.etcd\.io(/|$)' ./cmd/freehold
# gRPC, for traces, is for the process alone: packages make spans, and do not know where they go.
refuse "sends no traces by itself" 'google\.golang\.org/grpc(/|$)|go\.opentelemetry\.io/otel/sdk(/|$)' ./pkg/... ./cmd/kubectl-freehold
TAGS="$(sed -n 's/.* -tags=\([a-z0-9,]*\) .*/\1/p' hack/build.sh)"
refuse "makes the linker keep every method (see hack/build.sh)" 'golang\.org/x/net/trace$|html/template$' -tags="${TAGS}" ./cmd/freehold
exit "${status}"
