# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0

.DEFAULT_GOAL := help
SHELL := bash
# The make of macOS, 3.81, does not know this: a recipe that depends on it says so itself.
.SHELLFLAGS := -euo pipefail -c

# The path of the checkout stays out of what Go compiles, so that all clones share its cache.
export GOFLAGS := $(shell go env GOFLAGS) -trimpath
# As the release is built, so that it shares what is compiled with the tests.
export CGO_ENABLED ?= 0

# Where make build, make image and make release write to; git ignores it.
OUTPUT ?= _output
# What the pods of make run run on: fake, or real (Linux and root only).
NODE ?= fake
# The release of ToolHive whose programs make test-toolhive runs: v0.44.0, v0.47.0, or v0.62.0 and v0.63.0 (substituted builds).
VERSION ?=
# How long make simulate plays, and with which seed it begins.
FOR ?= 10m
SEED ?= $(shell date +%Y%m%d)
# How often make leaks creates and deletes MCPServers, and how many.
CYCLES ?= 100
FLEET ?= 200
# How long make fuzz runs each target.
FUZZTIME ?= 30s
# Where make push pushes the image to, without a tag.
TO ?=
# The tag that make release makes the release of; empty for a rehearsal.
TAG ?=
# How many MCPServers make bench creates; make soak has a default of its own.
N ?= 200
# With how many make bench-series measures, one after the other. ARGS=-per-namespace=0 has all of them in one namespace.
GROW ?= 100,300,1000,3000
# How long the random changes of make soak last.
DURATION ?= 1h

##@ Try it

.PHONY: run
run: ## Run the operator on a local cluster with its own rights, apply the samples, watch them (Ctrl-C stops all; NODE=real runs containers)
	@go -C hack build -o $(abspath $(OUTPUT))/bin/run ./cmd/run
	@exec $(abspath $(OUTPUT))/bin/run -node=$(NODE) $(ARGS)

##@ Test

.PHONY: test
test: ## Run the tests beside the code, and the main ones in simulated clusters and on a real API server (built the first time)
	@hack/test.sh unit core

.PHONY: test-rest
test-rest: ## Run what make test leaves out, which needs no real node: with the race detector, and long tests by turns of days
	@hack/test.sh race simulation tools rest

.PHONY: test-whole
test-whole: ## Run every test and case, the real node's included where there is one: hours
	@FREEHOLD_WHOLE=true FREEHOLD_NODE="$${FREEHOLD_NODE:-optional}" hack/test.sh unit race simulation tools cluster node

.PHONY: test-unit
test-unit: ## Run the tests that need nothing but Go
	@hack/test.sh unit

.PHONY: test-simulation
test-simulation: ## Run the operator in a simulated cluster: every order, every crash, random trouble
	@hack/test.sh simulation

.PHONY: test-simulation-whole
test-simulation-whole: ## Run these tests with all their cases, of which make test-simulation runs a share (about an hour)
	@FREEHOLD_WHOLE=true FREEHOLD_SEED="$(SEED)" hack/test.sh simulation

.PHONY: simulate
simulate: ## Play random histories for FOR (10m), from SEED, and record what was played in docs/reliability.md
	@set -o pipefail; go -C test/simulation test -tags=fieldsv1string,grpcnotrace -count=1 -timeout=0 -run='^TestSimulate$$' -v \
		-for=$(FOR) -seed=$(SEED) -record=$(abspath docs/reliability.md) . | grep -vE '^ *(=== |--- PASS)'

.PHONY: leaks
leaks: ## Create and delete FLEET (200) MCPServers CYCLES (100) times, which takes about an hour, and look for what stays of them
	@go -C test/simulation test -tags=fieldsv1string,grpcnotrace -count=1 -timeout=0 -run='^TestLeaks$$' -v \
		-cycles=$(CYCLES) -fleet=$(FLEET) .

.PHONY: test-tools
test-tools: ## Run the tests of the local cluster and of the other tools under hack/
	@hack/test.sh tools

.PHONY: test-cluster
test-cluster: ## Run the suites on a real API server
	@hack/test.sh cluster

.PHONY: e2e
e2e: ## Run the suites with ToolHive's programs and real MCP traffic on a real node (Linux and root only)
	@hack/test.sh node

.PHONY: test-toolhive
test-toolhive: ## Run a part of these suites with another release of ToolHive (VERSION=v0.44.0, v0.62.0 or v0.63.0)
	@FREEHOLD_TOOLHIVE="$(VERSION)" hack/test.sh toolhive

.PHONY: test-peer
test-peer: ## Run ToolHive's own scenarios about MCPServers, from its Go module, against Freehold
	@hack/test.sh peer

.PHONY: test-kubernetes
test-kubernetes: ## Run a part of the suites on the API server of an older Kubernetes (VERSION=v1.34.4, built the first time)
	@FREEHOLD_KUBERNETES="$(VERSION)" hack/test.sh kubernetes

.PHONY: fuzz
fuzz: ## Fuzz what parses the text of others, each target for FUZZTIME (FUZZTIME=30s, ARGS=FuzzRepair selects one)
	@FUZZTIME="$(FUZZTIME)" hack/fuzz.sh $(ARGS)

.PHONY: bench
bench: ## Measure convergence, idle writes, memory and CPU with N MCPServers (N=200), beside ToolHive's operator
	@cd test && go run -tags=fieldsv1string ./bench -n=$(N) $(ARGS)

.PHONY: bench-series
bench-series: ## Measure with GROW (100,300,1000,3000) MCPServers and record it in docs/performance.md (hours, on a quiet machine)
	@status=0; (cd test && go run -tags=fieldsv1string ./bench -grow=$(GROW) -idle=1m -outage=0 -foreign=0 \
		-record=$(abspath docs/performance/recorded.json) $(ARGS)) || status=$$?; hack/update-docs.sh; exit $${status}

.PHONY: soak
soak: N = 5000
soak: ## Change N (5000) MCPServers at random for DURATION (1h), from SEED, and check memory, queue, latency and writes
	@cd test && go run -tags=fieldsv1string ./bench soak -n=$(N) -duration=$(DURATION) -seed=$(SEED) $(ARGS)

##@ Check

.PHONY: verify
verify: ## Run every hack/verify-*.sh and list those that fail
	@hack/verify-all.sh

.PHONY: lint
lint: ## Run golangci-lint over every module (ARGS=--fix repairs what it can)
	@hack/verify-lint.sh $(ARGS)

.PHONY: fmt
fmt: ## Format all Go files and shell scripts
	@hack/update-gofmt.sh
	@hack/update-shfmt.sh

.PHONY: vulnerabilities
vulnerabilities: ## Look with govulncheck for known vulnerabilities (needs https://vuln.go.dev; make verify does it where that answers)
	@hack/vulnerabilities.sh

##@ Generate

.PHONY: generate
generate: ## Renew everything that is generated: code, CRD, manifests, tables in the documentation, the list of licences
	@hack/update-codegen.sh
	@hack/update-manifests.sh
	@hack/update-docs.sh
	@hack/update-licences.sh

.PHONY: manifests
manifests: ## Render deploy/install*.yaml and the overlays that tests look at
	@hack/update-manifests.sh

##@ Follow ToolHive

.PHONY: upstream-diff
upstream-diff: ## Print what changed between two ToolHive releases for Freehold (FROM=v0.62.0 TO=v0.63.0, ARGS=-full)
	@go -C hack/tools/upstreamdiff run . -from="$(FROM)" -to="$(TO)" $(ARGS)

##@ Build

.PHONY: build
build: ## Build the programs for this machine into _output/bin
	@hack/build.sh "$(OUTPUT)/bin"
	@cp deploy/krew/kubectl_complete-freehold "$(OUTPUT)/bin"

.PHONY: image
image: ## Build the operator's image, without a daemon or a registry, into _output/image
	@hack/build-image.sh "$(OUTPUT)/image"

.PHONY: push
push: ## Push what make image has built to a registry, without a daemon (TO=registry.example.com/freehold)
	@hack/push-image.sh "$(TO)" "$(OUTPUT)/image"

.PHONY: release
release: ## Make all files of a release into _output/release, without publishing them (TAG=v0.1.0 refuses another commit than its tag)
	@TAG="$(TAG)" hack/release.sh "$(OUTPUT)/release"

.PHONY: clean
clean: ## Remove _output (Go's own caches and the cluster's binaries stay)
	@rm -rf "$(OUTPUT)"

##@ Help

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
