// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestOddCharacters: characters that YAML does not take as JSON does arrive in the children as the MCPServer has them, and what
// Freehold owns is what it wants from then on.
func TestOddCharacters(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	s.Operate(t)
	const odd = "a\x01\x7f\u0080\u0085\u009f\u2028\u2029\ufeff\ufffe\uffff\U0001f600b"
	server := s.Create(t, harness.HTTPServer("odd", func(server *v1beta1.MCPServer) {
		server.Spec.Args = []string{odd}
		server.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{Type: "inline", Inline: &v1beta1.InlineAuthzConfig{
			Policies: []string{`permit(principal, action, resource) when { "` + "\u0085\u0090" + `" == "" };`},
		}}
	}, overriding(func(d *v1beta1.ProxyDeploymentOverrides) { d.Annotations = map[string]string{"example.com/odd": odd} })))
	s.AwaitStatus(t, server.Name, harness.Fine...)
	s.AwaitSettled(t, server.Name)

	backend, err := s.Core.AppsV1().StatefulSets(s.Name).Get(t.Context(), server.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if args := backend.Spec.Template.Spec.Containers[0].Args; !slices.Equal(args, []string{odd}) {
		t.Errorf("the backend has the arguments %q", args)
	}
	proxy, err := s.Core.AppsV1().Deployments(s.Name).Get(t.Context(), server.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if value := proxy.Annotations["example.com/odd"]; value != odd {
		t.Errorf("the proxy has the annotation %q", value)
	}
	s.runConfigShows(t, server.Name, "\u0085\u0090")

	s.AwaitRest(t)
	before := s.ChildVersions(t)[server.Name]
	s.Edit(t, server.Name, func(server *v1beta1.MCPServer) { server.Annotations = map[string]string{"example.com/pass": "another"} })
	s.CheckUnchanged(t, server.Name, before)
}
