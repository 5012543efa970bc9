// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/workload"
)

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
		{name: "size, tag that says nothing", image: "runner:latest", change: size, note: v1beta1.ReasonRunnerVersionUnknown},
		{name: "a timeout that is the default, older", image: "runner:v0.44.0", change: func(s *v1beta1.MCPServer) { s.Spec.ProxyReadTimeout = "0s" }},
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

// With which images of its pods and of the operator a proxy loses sessions that it keeps in Redis.
func TestSessionsAreLostFromAnOlderRunnerToANewerOne(t *testing.T) {
	for name, c := range map[string]struct {
		wanted string
		pods   []string
		want   bool
	}{
		"no pods":                  {wanted: "runner:v0.62.0"},
		"the same":                 {wanted: "runner:v0.62.0", pods: []string{"runner:v0.62.0"}},
		"both before":              {wanted: "runner:v0.47.0", pods: []string{"runner:v0.44.0"}},
		"both after":               {wanted: "runner:v0.62.0", pods: []string{"runner:v0.58.0"}},
		"from before to after":     {wanted: "runner:v0.58.0", pods: []string{"runner:v0.57.9"}, want: true},
		"to the default":           {pods: []string{"runner:v0.44.0"}, want: true},
		"while both run":           {wanted: "runner:v0.62.0", pods: []string{"runner:v0.62.0", "runner:v0.44.0"}, want: true},
		"back":                     {wanted: "runner:v0.44.0", pods: []string{"runner:v0.62.0"}},
		"from a tag of the user's": {wanted: "runner:v0.62.0", pods: []string{"runner:mine"}},
		"to a tag of the user's":   {wanted: "runner:mine", pods: []string{"runner:v0.44.0"}},
	} {
		var pods []*workload.Pod
		for _, image := range c.pods {
			pods = append(pods, &workload.Pod{Containers: []workload.Container{
				{Name: "sidecar", Image: "sidecar:v0.1.0"}, {Name: workload.ProxyContainer, Image: image},
			}})
		}
		if got := LosesSessions(pods, Options{RunnerImage: c.wanted}); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
