// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// TestMessagesStayShort: no value that a user writes makes a message that no condition can hold, or one of
// several lines.
func TestMessagesStayShort(t *testing.T) {
	long := strings.Repeat("ü\n", 50_000)
	server := newServer(func(s *v1beta1.MCPServer) {
		s.Name = long
		s.Spec.Image = " " + long
		s.Spec.Env = []v1beta1.EnvVar{{Name: long, Value: long}}
		s.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyService: &v1beta1.ResourceMetadataOverrides{
			Labels: map[string]string{long: long}, Annotations: map[string]string{long: ""},
		}}
	})
	problems := problemsOf(t, Input{Server: server})
	if len(problems) < 6 {
		t.Errorf("got %d problems only", len(problems))
	}
	for _, p := range problems {
		if utf8.RuneCountInString(p.Message) > maxMessage+1 || strings.Contains(p.Message, "\n") || !utf8.ValidString(p.Message) {
			t.Errorf("%s: %d characters: %q", p.Reason, utf8.RuneCountInString(p.Message), p.Message)
		}
	}
	if got, want := quote(long), `"`+strings.Repeat(`ü\n`, maxQuoted/2)+`…"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := quote("short"); got != `"short"` {
		t.Errorf("got %s", got)
	}
}
