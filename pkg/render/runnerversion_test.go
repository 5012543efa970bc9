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

// TestOlderRunnersAreNotTrustedWithWhatTheyIgnore: a proxyrunner leaves keys of the RunConfig that it does not know out of
// account without a word. Where that costs protection nothing is rendered, elsewhere it is reported.
func TestOlderRunnersAreNotTrustedWithWhatTheyIgnore(t *testing.T) {
	tls := func(s *v1beta1.MCPServer) {
		s.Spec.SessionStorage = &v1beta1.SessionStorageConfig{
			Provider: v1beta1.SessionStorageRedis, Address: "redis:6379", TLS: &v1beta1.RedisTLSConfig{},
		}
	}
	size := func(s *v1beta1.MCPServer) { s.Spec.MaxRequestBodySize = 1000 }
	timeout := func(s *v1beta1.MCPServer) { s.Spec.ProxyReadTimeout = "1m" }
	cases := []struct {
		name, image   string
		change        func(*v1beta1.MCPServer)
		refused       bool
		note          string
		operatorRedis *Redis
	}{
		{name: "TLS, older", image: "example.com:5000/runner:v0.44.0", change: tls, refused: true},
		{name: "TLS, older, with a digest", image: "runner:v0.44.0@sha256:" + strings.Repeat("a", 64), change: tls, refused: true},
		{name: "TLS, first that knows it", image: "runner:v0.52.0", change: tls},
		{name: "TLS, tag that says nothing", image: "runner:mine", change: tls, note: v1beta1.ReasonRunnerVersionUnknown},
		{name: "TLS, no tag", image: "example.com:5000/runner", change: tls, note: v1beta1.ReasonRunnerVersionUnknown},
		{name: "TLS of the operator's Redis, older", image: "runner:v0.44.0", operatorRedis: &Redis{Address: "redis:6379", TLS: true}, refused: true},
		{name: "the operator's Redis without TLS, older", image: "runner:v0.44.0", operatorRedis: &Redis{Address: "redis:6379"}},
		{name: "size, older", image: "runner:v0.44.0", change: size, note: v1beta1.ReasonRunnerTooOld},
		{name: "size, newer", image: "runner:0.62.0", change: size},
		{name: "timeout, older", image: "runner:v0.47.0", change: timeout, note: v1beta1.ReasonRunnerTooOld},
		{name: "timeout, newer", image: "runner:v0.62.0", change: timeout},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server := newServer()
			if c.change != nil {
				c.change(server)
			}
			result, err := Render(Input{Server: server}, Options{RunnerImage: c.image, DefaultRedis: c.operatorRedis})
			if refused := err != nil; refused != c.refused {
				t.Fatalf("got error %v, want refused %v", err, c.refused)
			}
			if c.refused {
				if !strings.Contains(err.Error(), v1beta1.ReasonRunnerTooOld) {
					t.Errorf("got %v, want reason %s", err, v1beta1.ReasonRunnerTooOld)
				}
				return
			}
			var notes []string
			for _, n := range result.Notices {
				notes = append(notes, n.Reason)
			}
			if got := strings.Join(notes, " "); got != c.note {
				t.Errorf("got notices %q, want %q", got, c.note)
			}
		})
	}
}
