// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics exposes the operator's metrics to Prometheus: its own, as data (Families), and those of the libraries
// that it is made of. docs/metrics.md is generated from it. All are in the legacy registry of component-base; only cmd
// and the generator may import this package.
package metrics
