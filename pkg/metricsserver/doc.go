// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metricsserver protects an HTTP endpoint: it serves TLS with a certificate that may change, and answers only those whom
// the API server knows (TokenReview) and lets read the path (SubjectAccessReview).
//
// k8s.io/apiserver has this too, but with it come more than 200 packages, gRPC and CEL among them, for an endpoint that
// Prometheus reads twice a minute.
package metricsserver
