// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// TestReadTimeoutIsWrittenAsGoReadsIt: the API server accepts durations that Go, and so the proxyrunner, does not parse.
// Each is translated, and none of them concerns another MCPServer.
func TestReadTimeoutIsWrittenAsGoReadsIt(t *testing.T) {
	cases := map[string]struct {
		want    string
		invalid bool
	}{
		"":       {},
		"0s":     {},
		"0":      {},
		"90s":    {want: "1m30s"},
		"1.5h":   {want: "1h30m0s"},
		"2d":     {want: "48h0m0s"},
		"1 week": {want: "168h0m0s"},
		"-1s":    {invalid: true},
		"abc":    {invalid: true},
	}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			server := newServer(func(s *v1beta1.MCPServer) { s.Spec.ProxyReadTimeout = text })
			result, err := Render(Input{Server: server}, Options{})
			invalid, refused := errors.AsType[*InvalidError](err)
			if refused != want.invalid {
				t.Fatalf("got error %v, want refused %v", err, want.invalid)
			}
			if refused {
				if got := invalid.Problems[0]; got.Reason != v1beta1.ReasonInvalidLimit || !strings.Contains(got.Message, "spec.proxyReadTimeout") {
					t.Errorf("got problem %+v", got)
				}
				return
			}
			document := parseJSON(t, []byte(runConfigText(t, result))).(map[string]any)
			if got, _ := document["proxy_read_timeout"].(string); got != want.want {
				t.Errorf("proxy_read_timeout is %q, want %q", got, want.want)
			}
		})
	}
}
