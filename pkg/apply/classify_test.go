// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/freehold-dev/freehold/pkg/apply"
)

var deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}

// answered is an answer of a kube-apiserver v1.37.1, as it was recorded, in the shape that client-go gives it.
func answered(t *testing.T, file string) error {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "answers", file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var status metav1.Status
	if err := json.Unmarshal(data, &status); err != nil {
		t.Fatal(err)
	}
	if status.Status != metav1.StatusFailure || status.Code == 0 {
		t.Fatalf("%s is no answer of a failure: %+v", file, status)
	}
	return apierrors.FromObject(&status)
}

// plain is an answer that is no Status, such as that of a load balancer.
func plain(code int) error {
	return apierrors.NewGenericServerResponse(code, "PATCH", deployments, "web", "upstream connect error", 0, true)
}

// raw is an answer of etcd, as the API server hands it through.
func raw(message string) error {
	return apierrors.FromObject(&metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: message})
}

// failure is an answer with nothing but a code and a reason.
func failure(code int32, reason metav1.StatusReason) error {
	return apierrors.FromObject(&metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: "no"})
}

func TestRecordedAnswersHaveTheirClasses(t *testing.T) {
	recorded := map[string]apply.Class{
		"conflict":              apply.ClassConflict,
		"stale-version":         apply.ClassMoved,
		"create-only-exists":    apply.ClassMoved,
		"missing-uid":           apply.ClassMoved,
		"other-uid":             apply.ClassMoved,
		"delete-other-uid":      apply.ClassMoved,
		"delete-stale":          apply.ClassMoved,
		"immutable":             apply.ClassInvalid,
		"status-invalid":        apply.ClassInvalid,
		"policy":                apply.ClassForbidden,
		"quota":                 apply.ClassForbidden,
		"forbidden":             apply.ClassForbidden,
		"unauthorized":          apply.ClassForbidden,
		"duplicate-key":         apply.ClassTerminal,
		"unknown-field":         apply.ClassTerminal,
		"too-large":             apply.ClassTerminal,
		"media-type":            apply.ClassTransient,
		"webhook-down":          apply.ClassTransient,
		"gone-version":          apply.ClassTransient,
		"status-of-missing":     apply.ClassGone,
		"namespace-missing":     apply.ClassGone,
		"namespace-terminating": apply.ClassGone,
		"delete-missing":        apply.ClassGone,
	}
	for name, want := range recorded {
		t.Run(name, func(t *testing.T) { expectClass(t, answered(t, name), want) })
	}
	edits := map[string]apply.Class{
		"edit-other-uid": apply.ClassMoved,
		"stale-version":  apply.ClassMoved,
		"policy":         apply.ClassForbidden,
		"forbidden":      apply.ClassForbidden,
		"status-invalid": apply.ClassInvalid,
		"webhook-down":   apply.ClassTransient,
		"delete-missing": apply.ClassGone,
	}
	for name, want := range edits {
		t.Run("edit "+name, func(t *testing.T) { expectClassOfEdit(t, answered(t, name), want) })
		recorded[name] = want
	}
	files, err := filepath.Glob(filepath.Join("testdata", "answers", "*.json"))
	if err != nil || len(files) != len(recorded) {
		t.Errorf("%d answers are recorded and %d are looked at (%v)", len(files), len(recorded), err)
	}
}

// expectClassOfEdit has an edit of managedFields refused.
func expectClassOfEdit(t *testing.T, answer error, want apply.Class) {
	t.Helper()
	s := created(t, content, stamped, web("a:1"))
	s.refuse = func(string) error { return answer }
	out := s.sync(web("a:1"), yieldImage)
	s.ends(out, apply.ActionRefused, want)
	s.expect("an edit", "edit ownership")
	if !errors.Is(out.Err, answer) {
		t.Error("the answer is not in the chain of errors")
	}
}

// An object that was made anew, which the cache does not show yet, is another one. The edit of the one before is no mistake.
func TestAnEditOfAnObjectThatWasMadeAnewIsNoMistake(t *testing.T) {
	s := created(t, content, stamped, web("a:1"))
	before := s.live()
	s.stored.UID = "another"
	req := apply.Request{Object: webRef, Config: web("a:1"), Observed: apply.Observed{Live: before}, Source: apply.Source{UID: sourceUID, Generation: 1}}
	yieldImage(&req)
	out := do(t.Context(), s.applier, s.writer, req)
	s.ends(out, apply.ActionRefused, apply.ClassMoved)
	if problem := out.Problem(); problem != "" {
		t.Errorf("it is told at once: %s", problem)
	}
	s.expect("an edit of the object before", "edit ownership")
}

func TestEveryErrorHasAClass(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want apply.Class
	}{
		"429":                      {apierrors.NewTooManyRequests("later", 1), apply.ClassTransient},
		"429 by hand":              {apierrors.NewTooManyRequestsError("later"), apply.ClassTransient},
		"500 InternalError":        {apierrors.NewInternalError(errors.New("etcd")), apply.ClassTransient},
		"500 without a Status":     {plain(500), apply.ClassTransient},
		"502 without a Status":     {plain(502), apply.ClassTransient},
		"503":                      {apierrors.NewServiceUnavailable("starting"), apply.ClassTransient},
		"503 without a Status":     {plain(503), apply.ClassTransient},
		"504 Timeout":              {apierrors.NewTimeoutError("etcd", 1), apply.ClassTransient},
		"500 ServerTimeout":        {apierrors.NewServerTimeout(deployments, "patch", 1), apply.ClassTransient},
		"deadline":                 {context.DeadlineExceeded, apply.ClassTransient},
		"cancelled":                {context.Canceled, apply.ClassTransient},
		"connection refused":       {&url.Error{Op: "Patch", URL: "https://x", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, apply.ClassTransient},
		"connection reset":         {fmt.Errorf("read: %w", syscall.ECONNRESET), apply.ClassTransient},
		"broken off":               {io.ErrUnexpectedEOF, apply.ClassTransient},
		"404":                      {apierrors.NewNotFound(deployments, "web"), apply.ClassGone},
		"404 of a reference":       {apierrors.NewNotFound(schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}, "web"), apply.ClassTransient},
		"404 without a Status":     {plain(404), apply.ClassTransient},
		"410":                      {failure(410, metav1.StatusReasonGone), apply.ClassGone},
		"409 AlreadyExists":        {apierrors.NewAlreadyExists(deployments, "web"), apply.ClassMoved},
		"400":                      {apierrors.NewBadRequest("no"), apply.ClassTransient},
		"405":                      {apierrors.NewMethodNotSupported(deployments, "patch"), apply.ClassTransient},
		"413":                      {apierrors.NewRequestEntityTooLargeError("limit is 1"), apply.ClassTerminal},
		"413 without a Status":     {plain(413), apply.ClassTransient},
		"wrapped":                  {fmt.Errorf("sending: %w", apierrors.NewUnauthorized("no")), apply.ClassForbidden},
		"a Status without a code":  {failure(0, ""), apply.ClassTransient},
		"422 without details":      {failure(422, metav1.StatusReasonInvalid), apply.ClassInvalid},
		"409 without details":      {failure(409, metav1.StatusReasonConflict), apply.ClassMoved},
		"403 without details":      {failure(403, metav1.StatusReasonForbidden), apply.ClassForbidden},
		"500 with an empty reason": {failure(500, ""), apply.ClassTransient},
		"etcd without a leader":    {raw("etcdserver: leader changed"), apply.ClassTransient},
		"etcd in a hurry":          {raw("etcdserver: request timed out"), apply.ClassTransient},
		"etcd without space":       {raw("etcdserver: mvcc: database space exceeded"), apply.ClassTransient},
		"a body that is not typed": {raw("failed to create typed patch object (a/b; v1, Kind=X): .spec: expected map, got x"), apply.ClassTerminal},
		"an object that is not typed": {
			raw("failed to create typed live object (a/b; v1, Kind=X): .spec: expected map, got x"), apply.ClassTransient,
		},
		"422 of a field that has no name": {
			apierrors.FromObject(&metav1.Status{
				Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid, Message: "no",
				Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid}}},
			}), apply.ClassInvalid,
		},
		"422 about nothing, of an apply": {
			apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "", "", 0, false), apply.ClassInvalid,
		},
		"400 without a reason": {failure(400, ""), apply.ClassTransient},
	} {
		t.Run(name, func(t *testing.T) { expectClass(t, test.err, test.want) })
	}
}

// denied is what the API server answers when an admission webhook denies a request. The webhook chooses the code, the reason and the details.
func denied(code int32, reason metav1.StatusReason, details *metav1.StatusDetails) error {
	return apierrors.FromObject(&metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Details: details,
		Message: `admission webhook "guard.example.com" denied the request: not on Fridays`,
	})
}

// A denial by a webhook is ClassForbidden, whatever code the webhook returns.
func TestWebhookDeniesWithAnyCode(t *testing.T) {
	for name, answer := range map[string]error{
		"400 without a reason": denied(400, "", nil),
		"401":                  denied(401, metav1.StatusReasonUnauthorized, nil),
		"403":                  denied(403, metav1.StatusReasonForbidden, nil),
		"404":                  denied(404, metav1.StatusReasonNotFound, nil),
		"404 of the object":    denied(404, metav1.StatusReasonNotFound, &metav1.StatusDetails{Kind: "deployments"}),
		"404 of a namespace":   denied(404, metav1.StatusReasonNotFound, &metav1.StatusDetails{Kind: "namespaces"}),
		"409":                  denied(409, metav1.StatusReasonConflict, nil),
		"409 AlreadyExists":    denied(409, metav1.StatusReasonAlreadyExists, nil),
		"409 about a field": denied(409, metav1.StatusReasonConflict, &metav1.StatusDetails{
			Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.replicas"}},
		}),
		"410":              denied(410, metav1.StatusReasonGone, nil),
		"413":              denied(413, metav1.StatusReasonRequestEntityTooLarge, nil),
		"422":              denied(422, metav1.StatusReasonInvalid, nil),
		"422 about itself": denied(422, metav1.StatusReasonInvalid, &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "metadata.uid"}}}),
		"429":              denied(429, metav1.StatusReasonTooManyRequests, nil),
		"500":              denied(500, metav1.StatusReasonInternalError, nil),
		"503":              denied(503, metav1.StatusReasonServiceUnavailable, nil),
	} {
		t.Run(name, func(t *testing.T) {
			expectClass(t, answer, apply.ClassForbidden)
			expectClassOfEdit(t, answer, apply.ClassForbidden)
		})
	}
}

// An error of Request.Before is classified like an answer of the API server, and ErrNotOurs is ClassMoved.
func TestWhatKeepsARequestBackIsClassifiedLikeAnAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want apply.Class
	}{
		"not ours":    {fmt.Errorf("another operator's: %w", apply.ErrNotOurs), apply.ClassMoved},
		"403":         {fmt.Errorf("asking: %w", failure(403, metav1.StatusReasonForbidden)), apply.ClassForbidden},
		"503":         {fmt.Errorf("asking: %w", apierrors.NewServiceUnavailable("starting")), apply.ClassTransient},
		"no API call": {errors.New("not now"), apply.ClassTransient},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, content, (*server).target)
			live := after(t, content.Name, web("a:1"))
			for what, out := range map[string]apply.Outcome{
				"an apply": b.applier.Sync(t.Context(), b.writer, apply.Request{
					Object:        webRef,
					Config:        web("a:2"),
					Observed:      apply.Observed{Live: live},
					Preconditions: apply.Preconditions{Before: func(context.Context) error { return test.err }},
				}),
				"a creation": b.applier.Sync(t.Context(), b.writer, apply.Request{
					Object:        apply.NewObjectRef(webRef.Kind, namespace, "other"),
					Config:        web("a:2"),
					Preconditions: apply.Preconditions{Before: func(context.Context) error { return test.err }},
				}),
				"a deletion": b.applier.Delete(t.Context(), webRef, live, (&deletion{answer: test.err}).send),
			} {
				if got := apply.ClassOf(out.Err); got != test.want || !errors.Is(out.Err, test.err) {
					t.Errorf("%s: class %s, want %s: %v", what, got, test.want, out.Err)
				}
			}
			b.expect(0, "it was kept back")
		})
	}
}

// expectClass sends an intent that the API server refuses, and checks the class of the refusal.
func expectClass(t *testing.T, answer error, want apply.Class) {
	t.Helper()
	b := newBench(t, content, (*server).target)
	b.refuse = answer
	out := b.sync(after(t, content.Name, web("a:1")), web("a:2"), 1)
	if out.Action != apply.ActionRefused {
		t.Errorf("action %s, want %s", out.Action, apply.ActionRefused)
	}
	if got := apply.ClassOf(out.Err); got != want {
		t.Errorf("class %s, want %s", got, want)
	}
	var refusal *apply.Refusal
	if !errors.As(out.Err, &refusal) {
		t.Fatalf("%T is no *Refusal", out.Err)
	}
	if refusal.Writer != content.Name || refusal.Object != webRef {
		t.Errorf("the refusal is of %s by %s", refusal.Object, refusal.Writer)
	}
	if !errors.Is(out.Err, answer) {
		t.Error("the answer is not in the chain of errors")
	}
	var conflict *apply.ConflictError
	if errors.As(out.Err, &conflict) != (want == apply.ClassConflict) {
		t.Errorf("a *ConflictError: %t, the class is %s", conflict != nil, want)
	}
	if refusal.Reason == "" || strings.ContainsAny(refusal.Reason, "\n\t\r") {
		t.Errorf("the reason is not one line: %q", refusal.Reason)
	}
}

func TestReasonsStayReadable(t *testing.T) {
	for name, message := range map[string]string{
		"as long as may be": strings.Repeat("x", 512),
		"long":              strings.Repeat("long ", 1000),
		"cut within a rune": strings.Repeat("é", 1000),
		"lines":             "one\n- two\r\n\tthree",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, content, (*server).target)
			b.refuse = apierrors.NewBadRequest(message)
			out := b.sync(nil, web("a:1"), 1)
			var refusal *apply.Refusal
			if !errors.As(out.Err, &refusal) {
				t.Fatalf("error %v", out.Err)
			}
			const most = 512 + len("...")
			if len(refusal.Reason) > most || !utf8.ValidString(refusal.Reason) || strings.ContainsAny(refusal.Reason, "\n\r\t") {
				t.Errorf("reason of %d bytes: %q", len(refusal.Reason), refusal.Reason)
			}
			if cut := strings.HasSuffix(refusal.Reason, "..."); cut != (len(message) > most) {
				t.Errorf("the reason is marked as cut: %t", cut)
			}
		})
	}
}

func TestClassOfFindsTheClassOfAWrappedRefusal(t *testing.T) {
	refusal := &apply.Refusal{Class: apply.ClassInvalid}
	for name, test := range map[string]struct {
		err  error
		want apply.Class
	}{
		"nothing":     {nil, ""},
		"a refusal":   {refusal, apply.ClassInvalid},
		"wrapped":     {fmt.Errorf("sync: %w", refusal), apply.ClassInvalid},
		"a conflict":  {&apply.ConflictError{Refusal: apply.Refusal{Class: apply.ClassConflict}}, apply.ClassConflict},
		"another one": {errors.New("x"), apply.ClassTransient},
	} {
		if got := apply.ClassOf(test.err); got != test.want {
			t.Errorf("%s: class %q, want %q", name, got, test.want)
		}
	}
}

// Texts that other clients have written into an object are cut before they are logged.
func TestForeignTextIsLoggedInPart(t *testing.T) {
	logger := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true)))
	junk := strings.Repeat("x", 200<<10)
	applier := apply.NewApplier(nil)
	applier.Note(klog.NewContext(t.Context(), logger), apply.Outcome{Replaced: junk, ReplacedReferences: junk, Action: apply.ActionNone})
	underlier, ok := logger.GetSink().(ktesting.Underlier)
	if !ok {
		t.Fatal("the logger has no buffer")
	}
	if text := underlier.GetBuffer().String(); len(text) > 4<<10 || !strings.Contains(text, "xxx...") {
		t.Errorf("%d bytes are logged", len(text))
	}
}

func TestOnlyAStatusThatNamesAnObjectSaysThatItIsAbsent(t *testing.T) {
	nameless := &metav1.Status{Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound, Message: "not here"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"none":                       {nil, false},
		"an object":                  {answered(t, "delete-missing"), true},
		"an object, wrapped":         {fmt.Errorf("cannot read: %w", apierrors.NewNotFound(deployments, "web")), true},
		"a namespace":                {answered(t, "namespace-missing"), true},
		"a page":                     {plain(404), false},
		"a Status without an object": {apierrors.FromObject(nameless), false},
		"another refusal":            {apierrors.NewConflict(deployments, "web", errors.New("changed")), false},
		"no answer":                  {io.EOF, false},
	} {
		if got := apply.IsAbsent(test.err); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
