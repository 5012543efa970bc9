// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sentryotlp stands in for github.com/getsentry/sentry-go/otel/otlp. Nothing is exported to Sentry: a DSN is an
// error.
package sentryotlp

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/sdk/trace"
)

// NewTraceExporter fails.
func NewTraceExporter(context.Context, string) (trace.SpanExporter, error) {
	return nil, errors.New("the exporter for Sentry is not in this build of ToolHive")
}
