// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

// instrumentation is the name under which this package makes spans.
const instrumentation = "github.com/freehold-dev/freehold/pkg/apply"

// Names of the spans. Each request that is sent has one span. It is a child of the span in the context of Applier.Sync or
// Applier.Delete; if there is none, or it is not recorded, no span is made.
const (
	SpanApply  = "apply"
	SpanEdit   = "edit managedFields"
	SpanDelete = "delete"
	SpanGet    = "get" // of an object of which the caller passed only the State, or by Read
)

const (
	// AttributeNamespace is the namespace of the object of a span.
	AttributeNamespace = attribute.Key("k8s.namespace.name")
	// AttributeOutcome is created, applied, claimed, deleted or read, or for a refusal the outcome of its class, see Policy.
	AttributeOutcome = attribute.Key("freehold.outcome")

	attributeObject          = attribute.Key("freehold.object")           // as in statefulset.apps/name
	attributeKind            = attribute.Key("freehold.kind")             // as in StatefulSet
	attributeWriter          = attribute.Key("freehold.writer")           // of an apply or an edit, or of a read that one waits for
	attributeCode            = attribute.Key("http.response.status_code") // of a refusal, if the API server has answered
	attributeResourceVersion = attribute.Key("freehold.resource_version") // after the request, or as it was read
)

// startSpan starts the span of a request. The span is nil where no tracer records it, so that this costs nothing.
func startSpan(ctx context.Context, name, writer string, ref ObjectRef) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, nil
	}
	attributes := []attribute.KeyValue{
		AttributeNamespace.String(ref.Namespace), attributeObject.String(ref.String()), attributeKind.String(ref.Kind.Kind),
	}
	if writer != "" {
		attributes = append(attributes, attributeWriter.String(writer))
	}
	return parent.TracerProvider().Tracer(instrumentation).Start(ctx, name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
}

// Read reads an object for another purpose than a write, with a span. It returns what load returns.
func Read(ctx context.Context, ref ObjectRef, load func(ctx context.Context) (metav1.Object, error)) (metav1.Object, error) {
	return read(ctx, fieldmanager.Writer{}, ref, nil, load)
}

// read reads an object of which an earlier state may be known, with a span.
func read(
	ctx context.Context, by fieldmanager.Writer, ref ObjectRef, known metav1.Object, load func(ctx context.Context) (metav1.Object, error),
) (metav1.Object, error) {
	ctx, span := startSpan(ctx, SpanGet, by.Name, ref)
	found, err := load(ctx)
	if err != nil {
		endSpan(span, "", "", classify(err, by, ref, known))
		return found, err
	}
	endSpan(span, "read", found.GetResourceVersion(), nil)
	return found, nil
}

// endSpan ends the span of a request: one that was accepted, or one that was refused. A delete has no resourceVersion.
func endSpan(span trace.Span, outcome, resourceVersion string, refusal error) {
	if span == nil {
		return
	}
	if refusal != nil {
		RecordRefusal(span, refusal)
	} else {
		span.SetAttributes(AttributeOutcome.String(strings.ToLower(outcome)))
	}
	if resourceVersion != "" {
		span.SetAttributes(attributeResourceVersion.String(resourceVersion))
	}
	span.End()
}

// RecordRefusal sets on a span the outcome of a refusal, the code of the API server's answer, and the status Error with a
// description that has no value of a field, see Brief.
func RecordRefusal(span trace.Span, refusal error) {
	span.SetAttributes(AttributeOutcome.String(Policies()[ClassOf(refusal)].Outcome))
	if status, answered := statusOf(refusal); answered {
		span.SetAttributes(attributeCode.Int(int(status.Code)))
	}
	span.SetStatus(codes.Error, Brief(refusal))
}

// maxCauses is how many causes of a refusal Brief names.
const maxCauses = 3

// Brief returns a one-line description of a refusal for readers that may not read the object. It has the names of
// objects, managers and fields, but no values and no messages of the API server, of policies or of webhooks, which quote
// values.
func Brief(refusal error) string {
	brief := string(ClassOf(refusal))
	if r, ok := errors.AsType[*Refusal](refusal); ok {
		brief += " of " + r.Object.String()
	}
	if conflict, ok := errors.AsType[*ConflictError](refusal); ok {
		first := conflict.Fields[0]
		brief += ": " + first.Path
		if len(first.Owners) > 0 {
			brief += " is held by " + first.Owners[0].Manager
		}
		if more := len(conflict.Fields) - 1; more > 0 {
			brief += fmt.Sprintf(" (+%d more fields)", more)
		}
		return brief
	}
	status, answered := statusOf(refusal)
	if !answered {
		return brief
	}
	brief += fmt.Sprintf(": %d %s", status.Code, http.StatusText(int(status.Code)))
	if status.Details == nil {
		return brief
	}
	var causes []string
	for _, cause := range status.Details.Causes {
		if cause.Field != "" && len(causes) < maxCauses {
			causes = append(causes, fmt.Sprintf("%s %s", cause.Field, cause.Type))
		}
	}
	if len(causes) > 0 {
		brief += " (" + strings.Join(causes, ", ") + ")"
	}
	return brief
}
