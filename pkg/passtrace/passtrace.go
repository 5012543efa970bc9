// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package passtrace makes the spans of passes over MCPServers.
package passtrace

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
)

// instrumentation is the name of the library in the spans.
const instrumentation = "github.com/freehold-dev/freehold/pkg/controller"

// SpanSync is the name of the span of one pass over one MCPServer. The requests of the pass are its children.
const SpanSync = "sync"

// Attributes of that span, besides apply.AttributeNamespace and apply.AttributeOutcome.
const (
	// AttributeServer is the name of the MCPServer.
	AttributeServer = attribute.Key("freehold.mcpserver")
	// AttributeGeneration is the generation of the MCPServer that the pass was about.
	AttributeGeneration = attribute.Key("freehold.generation")
)

// Outcomes of a pass. One that met a refusal has the outcome of the first.
const (
	// OutcomeDone means that the pass was completed; the status says what it found.
	OutcomeDone = "done"
	// OutcomeWaiting means that the pass ended early: for the cache, for a ConfigMap, or for its turn.
	OutcomeWaiting = "waiting"
	// OutcomeInvalid means that the spec cannot be rendered; conditions say why.
	OutcomeInvalid = "invalid-spec"
	// OutcomeDeleting means that the MCPServer is being deleted.
	OutcomeDeleting = "deleting"
	// OutcomeGone means that there is no such MCPServer.
	OutcomeGone = "gone"
)

// Begin begins the span of a pass.
func Begin(ctx context.Context, tracer trace.TracerProvider, server cache.ObjectName) (_ context.Context, end func()) {
	ctx, span := tracer.Tracer(instrumentation).Start(ctx, SpanSync)
	if span.IsRecording() {
		span.SetAttributes(apply.AttributeNamespace.String(server.Namespace), AttributeServer.String(server.Name))
	}
	return ctx, func() { span.End() }
}

// Generation records in the span of a pass which MCPServer it is about.
func Generation(ctx context.Context, server *v1beta1.MCPServer) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(AttributeGeneration.Int64(server.Generation))
	}
}

// End records in the span of a pass how it ended: with the outcome, or, where writes were refused, with that of the first
// refusal. A refusal that passes by itself is recorded only if there is no other.
func End(ctx context.Context, outcome string, refused ...error) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if len(refused) > 0 {
		apply.RecordRefusal(span, refused[max(0, slices.IndexFunc(refused, apply.IsReported))])
		return
	}
	span.SetAttributes(apply.AttributeOutcome.String(outcome))
	if outcome == OutcomeInvalid {
		span.SetStatus(codes.Error, "the spec cannot be rendered")
	}
}
