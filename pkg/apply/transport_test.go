// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The body of an apply is sent with odd characters escaped, again where the connection is lost, and no other request is changed.
func TestOddCharactersInTheBodyOfAnApplyAreEscaped(t *testing.T) {
	const odd, escaped = `{"data":{"a` + "\u0085" + `":"` + "\x7f" + `b"}}`, `{"data":{"a\u0085":"\u007fb"}}`
	for name, test := range map[string]struct{ kind, body, want string }{
		"an apply":                     {string(types.ApplyYAMLPatchType), odd, escaped},
		"an apply with a parameter":    {string(types.ApplyYAMLPatchType) + "; charset=utf-8", odd, escaped},
		"an apply without such":        {string(types.ApplyYAMLPatchType), `{"data":{"a":"é"}}`, `{"data":{"a":"é"}}`},
		"a JSON patch":                 {string(types.JSONPatchType), odd, odd},
		"a request of an unknown kind": {"", odd, odd},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || int64(len(body)) != r.ContentLength {
					t.Errorf("%d bytes of %d were sent: %v", len(body), r.ContentLength, err)
				}
				got = append(got, string(body))
				if len(got) == 1 {
					http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
				}
			}))
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.URL, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", test.kind)
			answer, err := (&http.Client{Transport: Transport(http.DefaultTransport)}).Do(request)
			if err != nil {
				t.Fatal(err)
			}
			if err := answer.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if len(got) != 2 || got[0] != test.want || got[1] != test.want {
				t.Errorf("sent: %q", got)
			}
		})
	}
}

// A request that is never answered ends after its deadline, and what says that it is not answered is an error that may pass; a watch goes on,
// and so does the reading of an answer that has come.
func TestARequestThatIsNeverAnsweredEnds(t *testing.T) {
	for name, test := range map[string]struct {
		method, url string
		ends        time.Duration
	}{
		"an apply":    {http.MethodPatch, "https://server/x?fieldManager=f", 35 * time.Second},
		"a deletion":  {http.MethodDelete, "https://server/x", 35 * time.Second},
		"a read":      {http.MethodGet, "https://server/x?watch=false", 65 * time.Second},
		"a watch":     {http.MethodGet, "https://server/x?watch=true", 0},
		"a bad query": {http.MethodGet, "https://server/x?watch=perhaps", 65 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				request, err := http.NewRequestWithContext(ctx, test.method, test.url, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := Deadline(transport{carry: func(r *http.Request) (*http.Response, error) {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}}).RoundTrip(request)
				if answer != nil {
					answer.Body.Close()
				}
				took, deadline := time.Since(began), errors.Is(err, context.DeadlineExceeded)
				if test.ends > 0 && (took != test.ends || !deadline || !strings.Contains(err.Error(), "no answer within")) || test.ends == 0 && took != time.Hour {
					t.Errorf("it ends after %v with %v", took, err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		var asked *http.Request
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/x", http.NoBody)
		answer, err := Deadline(transport{carry: func(r *http.Request) (*http.Response, error) {
			asked = r
			return &http.Response{Body: io.NopCloser(strings.NewReader("{}"))}, nil
		}}).RoundTrip(request)
		if err != nil || asked.Context().Err() != nil {
			t.Fatalf("the answer ends before it is read: %v, %v", err, asked.Context().Err())
		}
		if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "{}" {
			t.Errorf("the answer is %q, %v", text, err)
		}
		if err := answer.Body.Close(); err != nil || asked.Context().Err() == nil {
			t.Errorf("the answer was read, and its deadline runs on: %v", err)
		}
	})
}
