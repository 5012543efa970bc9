// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

module github.com/freehold-dev/freehold/hack/tools/upstreamdiff

go 1.26.0

require (
	github.com/aymanbagabas/go-udiff v0.4.1
	sigs.k8s.io/yaml v1.6.0
)

require go.yaml.in/yaml/v2 v2.4.2 // indirect
