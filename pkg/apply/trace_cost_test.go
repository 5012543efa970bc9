// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Where nobody listens no span is made, and to find that out costs nothing.
func TestWithoutAListenerNoSpanIsMade(t *testing.T) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	unsampled, parent := provider.Tracer("test").Start(t.Context(), "parent")
	defer parent.End()
	for name, ctx := range map[string]context.Context{"no trace": t.Context(), "a trace that is not sampled": unsampled} {
		allocations := testing.AllocsPerRun(100, func() {
			inner, span := startSpan(ctx, SpanApply, "writer", ObjectRef{})
			endSpan(span, string(ActionApplied), "1", nil)
			endSpan(span, "", "", nil)
			if span != nil || inner != ctx {
				t.Fatalf("%s: a span was made", name)
			}
		})
		if allocations > 0 {
			t.Errorf("%s: %.0f allocations", name, allocations)
		}
	}
}
