// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// instrumentation is the name under which this package makes spans.
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
	// OutcomeDone means that the pass came to its end; the status says what it found.
	OutcomeDone = "done"
	// OutcomeWaiting means that the pass ended early: for the cache, for a ConfigMap, or for its turn.
	OutcomeWaiting = "waiting"
	// OutcomeInvalid means that the spec cannot be rendered; conditions tell why.
	OutcomeInvalid = "invalid-spec"
	// OutcomeDeleting means that the MCPServer is being deleted.
	OutcomeDeleting = "deleting"
	// OutcomeGone means that there is no such MCPServer.
	OutcomeGone = "gone"
)

// traced is sync with a span about it.
func (c *Controller) traced(ctx context.Context, key cache.ObjectName) retry {
	ctx, span := c.tracer.Start(ctx, SpanSync)
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(apply.AttributeNamespace.String(key.Namespace), AttributeServer.String(key.Name))
	}
	return c.sync(ctx, key)
}

// traceEnd tells the span of a pass that ended without looking at its MCPServer.
func traceEnd(ctx context.Context, outcome string) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(apply.AttributeOutcome.String(outcome))
	}
}

// trace tells the span of a pass how it ended.
func (p *pass) trace(ctx context.Context) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(AttributeGeneration.Int64(p.server.Generation))
	// What passes by itself is told only if there is nothing else to tell.
	first := slices.IndexFunc(p.refused, isNews)
	switch {
	case first >= 0:
		apply.RecordRefusal(span, p.refused[first])
	case len(p.refused) > 0:
		apply.RecordRefusal(span, p.refused[0])
	case p.takeover.unrendered:
		span.SetAttributes(apply.AttributeOutcome.String(OutcomeInvalid))
		span.SetStatus(codes.Error, "the spec cannot be rendered")
	case p.server.DeletionTimestamp != nil:
		span.SetAttributes(apply.AttributeOutcome.String(OutcomeDeleting))
	case p.reporting:
		span.SetAttributes(apply.AttributeOutcome.String(OutcomeDone))
	default:
		span.SetAttributes(apply.AttributeOutcome.String(OutcomeWaiting))
	}
}
