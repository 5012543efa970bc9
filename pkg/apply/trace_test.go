// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// told is a span in short.
type told struct {
	Name       string
	Attributes map[string]string
	Failed     string
}

// traced is a context with a span in it, and what ends that span and returns its children.
func traced(t *testing.T, options ...sdktrace.TracerProviderOption) (ctx context.Context, children func() []told) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(append(options, sdktrace.WithSyncer(exporter))...)
	ctx, parent := provider.Tracer("test").Start(t.Context(), "parent")
	return ctx, func() []told {
		parent.End()
		var found []told
		for _, span := range exporter.GetSpans() {
			if span.Parent.SpanID() != parent.SpanContext().SpanID() {
				continue
			}
			if span.SpanKind != trace.SpanKindClient {
				t.Errorf("%s is a span of kind %s", span.Name, span.SpanKind)
			}
			one := told{Name: span.Name, Attributes: map[string]string{}}
			for _, attribute := range span.Attributes {
				one.Attributes[string(attribute.Key)] = attribute.Value.String()
			}
			if span.Status.Code == codes.Error {
				one.Failed = span.Status.Description
			}
			found = append(found, one)
		}
		return found
	}
}

// A request that is sent has a span, and one that is not sent has none.
func TestEachRequestThatIsSentHasASpan(t *testing.T) {
	ctx, children := traced(t)
	b := newBench(t, content, (*server).target)
	sync := func(live *deployment, want *configuration) apply.Outcome {
		request := apply.Request{Object: webRef, Config: want}
		if live != nil {
			request.Live = live
		}
		return do(ctx, b.applier, b.writer, request)
	}
	live := b.settled(sync(nil, web("a:1")), apply.ActionCreated)
	live = b.settled(sync(live, web("a:1")), apply.ActionNone)
	live = b.settled(sync(live, web("a:2")), apply.ActionApplied)
	foreign(live, "kubectl", `{"f:spec":{"f:replicas":{}}}`)
	b.refuse = answered(t, "conflict")
	sync(live, web("a:3"))
	sync(live, web("a:3")) // It is known by now that this is refused.
	b.refuse = context.DeadlineExceeded
	sync(live, web("a:4"))
	var sent deletion
	if out := b.applier.Delete(ctx, webRef, live, sent.send); out.Err != nil {
		t.Fatal(out.Err)
	}
	if out := b.applier.Delete(ctx, webRef, live, sent.send); out.Err != nil { // The second is not sent.
		t.Fatal(out.Err)
	}
	other := live.DeepCopy()
	other.UID, sent.answer = "other", answered(t, "forbidden")
	if out := b.applier.Delete(ctx, webRef, other, sent.send); out.Err == nil {
		t.Fatal("accepted")
	}

	about := func(more ...string) map[string]string {
		all := map[string]string{"k8s.namespace.name": "shop", "freehold.object": "deployment.apps/web", "freehold.kind": "Deployment"}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	by := func(more ...string) map[string]string { return about(append(more, "freehold.writer", content.Name)...) }
	want := []told{
		{Name: "apply", Attributes: by("freehold.outcome", "created", "freehold.resource_version", "101")},
		{Name: "apply", Attributes: by("freehold.outcome", "applied", "freehold.resource_version", "102")},
		{
			Name: "apply", Attributes: by("freehold.outcome", "conflict", "http.response.status_code", "409"),
			Failed: "Conflict of deployment.apps/web: .spec.replicas is held by kubectl (+1 more fields)",
		},
		{Name: "apply", Attributes: by("freehold.outcome", "transient"), Failed: "Transient of deployment.apps/web"},
		{Name: "delete", Attributes: about("freehold.outcome", "deleted")},
		{
			Name: "delete", Attributes: about("freehold.outcome", "forbidden", "http.response.status_code", "403"),
			Failed: "Forbidden of deployment.apps/web: 403 Forbidden",
		},
	}
	if reduced { // The conflict is explained by a read.
		want = slices.Insert(want, 2, told{Name: "get", Attributes: by("freehold.outcome", "read", "freehold.resource_version", "102")})
	}
	if diff := cmp.Diff(want, children()); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

func TestAnEditOfManagedFieldsHasASpan(t *testing.T) {
	ctx, children := traced(t)
	s := newStore(t, content, nil)
	s.sync(web("a:1"), nil)
	s.sync(web("a:2"), func(req *apply.Request) {
		req.Yield = func(path fieldpath.Path) bool { return strings.HasSuffix(path.String(), ".image") }
		do(ctx, s.applier, s.writer, *req)
	})
	var got []string
	for _, span := range children() {
		got = append(got, strings.Join([]string{
			span.Name, span.Attributes["freehold.writer"], span.Attributes["freehold.outcome"], span.Attributes["freehold.resource_version"],
		}, " "))
	}
	want := []string{"edit managedFields content claimed 102"}
	if reduced {
		want = slices.Insert(want, 0, "get content read 101")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

// What a span tells of a refusal has no value in it, and none of the words of others.
func TestASpanTellsOfARefusalWithoutValues(t *testing.T) {
	live := foreign(after(t, content.Name, web("a:1")), "them", `{"f:spec":{"f:paused":{}}}`)
	got := map[string]string{}
	for class, file := range refusals {
		b := newBench(t, content, (*server).target)
		b.refuse = answered(t, file)
		got[string(class)] = apply.Brief(b.sync(live, web("a:2"), 1).Err)
	}
	want := map[string]string{
		"Conflict":  "Conflict of deployment.apps/web: .spec.replicas (+1 more fields)",
		"Forbidden": "Forbidden of deployment.apps/web: 403 Forbidden",
		"Gone":      "Gone of deployment.apps/web: 404 Not Found",
		"Invalid": "Invalid of deployment.apps/web: 422 Unprocessable Entity " +
			"(spec.template.metadata.labels FieldValueInvalid, spec.selector FieldValueInvalid)",
		"Moved":     "Moved of deployment.apps/web: 409 Conflict",
		"Terminal":  "Terminal of deployment.apps/web: 500 Internal Server Error",
		"Transient": "Transient of deployment.apps/web: 500 Internal Server Error",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in brief (-want +got):\n%s", diff)
	}
	answers, err := filepath.Glob(filepath.Join("testdata", "answers", "*.json"))
	if err != nil || len(answers) < 20 {
		t.Fatalf("there are %d answers, %v", len(answers), err)
	}
	for _, file := range answers {
		b := newBench(t, content, (*server).target)
		answer, _ := errors.AsType[*apierrors.StatusError](answered(t, strings.TrimSuffix(filepath.Base(file), ".json")))
		b.refuse = answer
		brief := apply.Brief(b.sync(live, web("a:2"), 1).Err)
		texts := []string{answer.ErrStatus.Message}
		if details := answer.ErrStatus.Details; details != nil {
			for _, cause := range details.Causes {
				texts = append(texts, cause.Message)
			}
		}
		for _, text := range texts {
			if text != "" && text != http.StatusText(int(answer.ErrStatus.Code)) && strings.Contains(brief, text) {
				t.Errorf("%s: %q has the words %q", file, brief, text)
			}
		}
	}
}
