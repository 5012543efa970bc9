// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
