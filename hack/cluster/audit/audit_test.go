// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// line returns an audit event as the API server writes it.
func line(user, verb, uri string, code int, more ...string) string {
	fields := append([]string{
		`"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete"`,
		fmt.Sprintf(`"auditID":"id","verb":%q,"requestURI":%q,"user":{"username":%q,"groups":["g"]}`, verb, uri, user),
		fmt.Sprintf(`"userAgent":"agent","responseStatus":{"metadata":{},"code":%d}`, code),
		`"requestReceivedTimestamp":"2026-01-02T03:04:05.678901Z"`,
	}, more...)
	return "{" + strings.Join(fields, ",") + "}\n"
}

const deploymentRef = `"objectRef":{"resource":"deployments","namespace":"ns","name":"web",` +
	`"apiGroup":"apps","apiVersion":"v1","subresource":"status"}`

func mustParse(t *testing.T, text string) *Event {
	t.Helper()
	event, err := parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return event
}

func TestParse(t *testing.T) {
	force := true
	got := mustParse(t, line("alice", "patch", "/apis/apps/v1/namespaces/ns/deployments/web/status?fieldManager=a%2Fb&force=true",
		200, deploymentRef, `"impersonatedUser":{"username":"bob"}`, `"requestObject":{"a":1}`))
	want := &Event{
		ID: "id", Received: time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC),
		User: "alice", ImpersonatedUser: "bob", Groups: []string{"g"}, UserAgent: "agent", Verb: "patch",
		URI:   "/apis/apps/v1/namespaces/ns/deployments/web/status?fieldManager=a%2Fb&force=true",
		Group: "apps", Version: "v1", Resource: "deployments", Subresource: "status", Namespace: "ns", Name: "web",
		Code: 200, FieldManager: "a/b", Force: &force, Body: []byte(`{"a":1}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := parse([]byte(`{"requestURI":`)); err == nil {
		t.Error("half an event is no error")
	}
}

func TestWhatAnEventIs(t *testing.T) {
	const uri = "/apis/apps/v1/namespaces/ns/deployments/web"
	for name, test := range map[string]struct {
		line                 string
		write, apply, forced bool
	}{
		"apply":         {line("u", "patch", uri+"?fieldManager=m&force=false", 200, deploymentRef), true, true, false},
		"forced apply":  {line("u", "patch", uri+"?fieldManager=m&force=true", 200, deploymentRef), true, true, true},
		"force=1":       {line("u", "patch", uri+"?fieldManager=m&force=1", 200, deploymentRef), true, true, true},
		"other patch":   {line("u", "patch", uri+"?fieldManager=m", 200, deploymentRef), true, false, false},
		"dry run":       {line("u", "patch", uri+"?dryRun=All&fieldManager=m&force=false", 200, deploymentRef), false, true, false},
		"update":        {line("u", "update", uri, 200, deploymentRef), true, false, false},
		"delete":        {line("u", "delete", uri, 200, deploymentRef), true, false, false},
		"failed create": {line("u", "create", uri, 403, deploymentRef), true, false, false},
		"get":           {line("u", "get", uri, 200, deploymentRef), false, false, false},
		"access review": {line("u", "create", uri, 201,
			`"objectRef":{"resource":"subjectaccessreviews","apiGroup":"authorization.k8s.io"}`), false, false, false},
		"token request": {line("u", "create", uri, 201,
			`"objectRef":{"resource":"serviceaccounts","subresource":"token"}`), false, false, false},
		"service account": {line("u", "create", uri, 201, `"objectRef":{"resource":"serviceaccounts"}`), true, false, false},
	} {
		event := mustParse(t, test.line)
		if event.IsWrite() != test.write || event.IsApply() != test.apply || event.IsForced() != test.forced {
			t.Errorf("%s: write %t, apply %t, forced %t, want %t, %t, %t", name,
				event.IsWrite(), event.IsApply(), event.IsForced(), test.write, test.apply, test.forced)
		}
	}
}

func TestPreconditions(t *testing.T) {
	const uri = "/api/v1/namespaces/ns/pods/p"
	guarded := mustParse(t, line("u", "delete", uri, 200,
		`"requestObject":{"kind":"DeleteOptions","preconditions":{"uid":"x","resourceVersion":"7"}}`))
	if uid, version, err := guarded.Preconditions(); uid != "x" || version != "7" || err != nil {
		t.Errorf("Preconditions() = %q, %q, %v", uid, version, err)
	}
	evicted := mustParse(t, line("u", "create", uri+"/eviction", 201,
		`"requestObject":{"kind":"Eviction","deleteOptions":{"preconditions":{"uid":"x","resourceVersion":"7"}}}`))
	if uid, version, err := evicted.Preconditions(); uid != "x" || version != "7" || err != nil {
		t.Errorf("Preconditions() of an eviction = %q, %q, %v", uid, version, err)
	}
	for _, more := range []string{`"a":1`, `"requestObject":{"kind":"DeleteOptions"}`, `"requestObject":{"kind":"Eviction"}`} {
		if uid, version, err := mustParse(t, line("u", "delete", uri, 200, more)).Preconditions(); uid+version != "" || err != nil {
			t.Errorf("%s: Preconditions() = %q, %q, %v", more, uid, version, err)
		}
	}
}

func TestFilters(t *testing.T) {
	write := mustParse(t, line("alice", "update", "/apis/apps/v1/x", 409, deploymentRef))
	asBob := mustParse(t, line("alice", "get", "/apis/apps/v1/x", 200, `"impersonatedUser":{"username":"bob"}`))
	account := mustParse(t, line("system:serviceaccount:ns:op", "get", "/x", 200))
	for name, test := range map[string]struct {
		filter Filter
		event  *Event
		want   bool
	}{
		"user":                     {User("carol", "alice"), write, true},
		"other user":               {User("bob"), write, false},
		"impersonated":             {User("bob"), asBob, true},
		"not the impersonator":     {User("alice"), asBob, false},
		"service account":          {ServiceAccount("ns", "op"), account, true},
		"other service account":    {ServiceAccount("op", "ns"), account, false},
		"verb":                     {Verb("get", "update"), write, true},
		"other verb":               {Verb("get"), write, false},
		"resource":                 {Resource("apps", "deployments"), write, true},
		"other group":              {Resource("", "deployments"), write, false},
		"namespace":                {Namespace("ns"), write, true},
		"other namespace":          {Namespace("x"), write, false},
		"writes":                   {Writes(), write, true},
		"read is no write":         {Writes(), asBob, false},
		"applies":                  {Applies(), write, false},
		"failed":                   {Succeeded(), write, false},
		"succeeded":                {Succeeded(), asBob, true},
		"not":                      {Not(Writes()), write, false},
		"any":                      {Any(Verb("get"), Writes()), write, true},
		"any of none":              {Any(), write, false},
		"all, one of which is not": {all([]Filter{Writes(), Succeeded()}), write, false},
		"all of none":              {all(nil), write, true},
	} {
		if got := test.filter(test.event); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// growingLog is a log file and a function that writes to its end.
func growingLog(t *testing.T) (reader *Reader, write func(string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return NewReader(path), func(text string) {
		t.Helper()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
}

func users(events []*Event) string {
	names := make([]string, len(events))
	for i, event := range events {
		names[i] = event.User
	}
	return strings.Join(names, " ")
}

func TestReaderGoesOnFromItsMark(t *testing.T) {
	reader, write := growingLog(t)
	keeping := NewKeepingReader(reader.path)
	expect := func(from Mark, want string, filters ...Filter) Mark {
		t.Helper()
		events, end, err := reader.Since(from, filters...)
		if err != nil {
			t.Fatal(err)
		}
		if got := users(events); got != want {
			t.Errorf("events are of %q, want %q", got, want)
		}
		kept, endOfKept, err := keeping.Since(from, filters...)
		if err != nil || users(kept) != want || endOfKept != end {
			t.Errorf("a reader that keeps them: events are of %q, %v, to %v, want %q to %v", users(kept), err, endOfKept, want, end)
		}
		return end
	}
	expect(Mark{}, "")
	write(line("a", "get", "/", 200) + line("b", "update", "/", 200))
	end := expect(Mark{}, "a b")
	expect(Mark{}, "b", Writes())
	expect(end, "")

	third := line("c", "get", "/", 200)
	write(third[:10])
	if half := expect(end, ""); half != end {
		t.Errorf("the mark moved from %v to %v over half an event", end, half)
	}
	mark, err := reader.Mark()
	if err != nil || mark != end {
		t.Errorf("Mark() = %v, %v within an event, want its beginning %v", mark, err, end)
	}
	write(third[10:])
	expect(end, "c")
	expect(Mark{offset: int64(len(line("a", "get", "/", 200)))}, "b c")
	expect(Mark{}, "a b c")
	expect(Mark{}, "b", Writes())
	if mark, err = reader.Mark(); err != nil || mark.offset != end.offset+int64(len(third)) {
		t.Errorf("Mark() = %v, %v", mark, err)
	}
}

func TestMarkWithinAnEventThatIsLongerThanABlock(t *testing.T) {
	reader, write := growingLog(t)
	first := line("a", "get", "/", 200)
	write(first + `{"requestObject":"` + strings.Repeat("x", 2*markBlock))
	if mark, err := reader.Mark(); err != nil || mark.offset != int64(len(first)) {
		t.Errorf("Mark() = %v, %v, want %d", mark, err, len(first))
	}
}

func TestReaderRefusesWhatIsNoEvent(t *testing.T) {
	reader, write := growingLog(t)
	write(line("a", "get", "/", 200) + "{]\n")
	keeping := NewKeepingReader(reader.path)
	for range 2 {
		for name, r := range map[string]*Reader{"keeping nothing": reader, "keeping": keeping} {
			if events, _, err := r.Since(Mark{}); err == nil || len(events) > 0 {
				t.Errorf("%s: a damaged log is no error, but %d events", name, len(events))
			}
		}
	}
	if _, _, err := NewReader(filepath.Join(t.TempDir(), "none")).Since(Mark{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading no log: %v", err)
	}
}

func TestWaitFor(t *testing.T) {
	reader, write := growingLog(t)
	write(line("a", "get", "/", 200))
	three := func(events []*Event) bool {
		if len(events) == 1 {
			// The reader has seen the first event alone.
			write(line("b", "get", "/", 200) + line("c", "get", "/", 200))
		}
		return len(events) == 3
	}
	events, end, err := reader.WaitFor(t.Context(), Mark{}, three)
	if err != nil || users(events) != "a b c" {
		t.Errorf("WaitFor() = %q, %v", users(events), err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, _, err := reader.WaitFor(ctx, end, func([]*Event) bool { return false }); !errors.Is(err, cause) {
		t.Errorf("WaitFor() with an ended context: %v, want %v", err, cause)
	}
}
