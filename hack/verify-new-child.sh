#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Adds a child to a copy of the checkout as docs/architecture.md says, with docs/architecture/networkpolicy.patch. Fails when
# that edits more than five files by hand, when it does not build or its tests fail, and when one of the files can be left out
# without the compiler or a test noticing.
set -euo pipefail

# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/edits.sh"
readonly PATCH=docs/architecture/networkpolicy.patch
# The tests that notice what is missing, and those that show that the operator manages the child.
readonly NOTICE=(./pkg/fieldmanager/... ./pkg/inventory ./pkg/render ./pkg/writers)
readonly MANAGE='^(TestAnMCPServerGetsItsChildrenAndItsStatus|TestReadsAreThoseOfInformers|TestWritesArePreconditioned|TestReduce.*|TestDeletion.*)$'

make_edits "${PATCH}" 5
hack/update-manifests.sh >/dev/null
# As make generate does, which generates more.
(cd hack/tools/codegen && go run ./kindschema ../../boilerplate.go.txt ../../../generated/schema/zz_generated.schema.go)
go run ./docs/derived docs/{architecture,field-managers,security}.md
go build ./...
go test -skip="${RECORDED}" "${NOTICE[@]}" ./docs/derived
go test -run="${MANAGE}" ./pkg/controller
go test -run='^(TestOperatorMayDoWhatItsWritersNeed|TestFieldManagersAreGuardedWhereverTheyWrite)$' ./deploy
leave_out_each "${PATCH}" "${NOTICE[@]}"
