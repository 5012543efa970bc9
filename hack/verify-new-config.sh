#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Adds a kind of configuration to a copy of the checkout as docs/architecture.md says, with docs/architecture/egressconfig.patch,
# which has the API types as well. Fails when that edits more than six other files by hand, when it does not build or its tests fail,
# and when one of the six can be left out without the compiler or a test noticing.
set -euo pipefail

# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/edits.sh"
readonly PATCH=docs/architecture/egressconfig.patch
# The tests that notice what is missing, and those that show that the operator keeps objects of the kind and renders their effect.
readonly NOTICE=(./pkg/configs ./pkg/fieldmanager/... ./pkg/render ./pkg/writers)
readonly MANAGE='^(TestEveryKindIsKept|TestReadsAreThoseOfInformers)$'

make_edits "${PATCH}" 6
hack/update-codegen.sh >codegen.log 2>&1 || {
	cat codegen.log >&2
	exit 1
}
hack/update-manifests.sh >/dev/null
go run ./docs/derived docs/{architecture,field-managers,security}.md
go build ./...
go test -skip="${RECORDED}" "${NOTICE[@]}" ./docs/derived ./pkg/metrics ./pkg/status
go test -run="${MANAGE}" ./pkg/controller
go test -run='^(TestOperatorMayDoWhatItsWritersNeed|TestFieldManagersAreGuardedWhereverTheyWrite)$' ./deploy
leave_out_each "${PATCH}" "${NOTICE[@]}"
