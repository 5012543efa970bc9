// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
)

func TestCandidates(t *testing.T) {
	for _, test := range []struct {
		kind schema.GroupKind
		name string
		want []string
	}{
		{managers.Deployment, "web", []string{"web"}},
		{managers.StatefulSet, "web", []string{"web"}},
		{managers.ServiceKind, "mcp-web-proxy", []string{"web", "web-proxy"}},
		{managers.ServiceKind, "mcp-web-headless", []string{"web", "web-headless"}},
		{managers.ServiceKind, "mcp-web", []string{"web"}},
		{managers.ServiceKind, "mcp--proxy", []string{"-proxy"}}, // no name at all before the suffix
		{managers.ServiceKind, "web", nil},
		{managers.ServiceKind, "mcp-", nil},
		{managers.ConfigMap, "web-runconfig", []string{"web"}},
		{managers.ConfigMap, "web-authz-inline", []string{"web"}},
		{managers.ConfigMap, "web-runconfig-0123456789abcdef", []string{"web"}},
		{managers.ConfigMap, "web-authz-inline-0123456789abcdef", []string{"web"}},
		{managers.ConfigMap, "web-runconfig-0123456789abcdeg", nil},
		{managers.ConfigMap, "web-runconfig-0123456789abcde", nil},
		{managers.ConfigMap, "web-0123456789abcdef", nil},
		{managers.ConfigMap, "kube-root-ca.crt", nil},
		{managers.ConfigMap, "-runconfig", nil},
		{managers.ServiceAccount, "web-sa", []string{"web"}},
		{managers.ServiceAccount, "default", nil},
		{managers.Role, "web-proxy-runner", []string{"web"}},
		{managers.RoleBinding, "web-proxy-runner", []string{"web"}},
		{managers.MCPServer, "web", nil},
	} {
		if diff := cmp.Diff(test.want, candidates(test.kind, test.name)); diff != "" {
			t.Errorf("candidates of %s %s (-want +got):\n%s", test.kind, test.name, diff)
		}
	}
}

// genServerName draws names in which the affixes occur as well.
func genServerName() *rapid.Generator[string] {
	part := rapid.SampledFrom([]string{"web", "a", "mcp-", "-proxy", "-sa", "-headless", "-proxy-runner"})
	return rapid.Custom(func(t *rapid.T) string {
		name := ""
		for _, p := range rapid.SliceOfN(part, 1, 4).Draw(t, "parts") {
			name += p
		}
		return name
	})
}

// An object, but for ConfigMaps, is a child that an MCPServer may have just if the MCPServer is a candidate for the object.
func TestChildrenAndCandidatesAreInverse(t *testing.T) {
	kinds := []schema.GroupKind{
		managers.Deployment, managers.StatefulSet, managers.ServiceKind,
		managers.ServiceAccount, managers.Role, managers.RoleBinding, managers.MCPServer,
	}
	rapid.Check(t, func(t *rapid.T) {
		server := genServerName().Draw(t, "server")
		refs := fixed(cache.NewObjectName("shop", server))
		for _, ref := range refs {
			if ref.Namespace != "shop" || !slices.Contains(candidates(ref.Kind, ref.Name), server) {
				t.Fatalf("%s is a child of %s, and does not lead to it", ref, server)
			}
		}
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		name := genServerName().Draw(t, "object")
		seen := map[string]bool{}
		for _, candidate := range candidates(kind, name) {
			if seen[candidate] {
				t.Fatalf("%s is a candidate twice", candidate)
			}
			seen[candidate] = true
			if !slices.Contains(fixed(cache.NewObjectName("shop", candidate)), childRef(kind, "shop", name)) {
				t.Fatalf("%s is a candidate for %s %s, which is no child of it", candidate, kind, name)
			}
		}
	})
}

// Whatever is rendered, or was under an earlier spec, is a child: else its events would wake nobody.
func TestEverythingRenderedIsAChild(t *testing.T) {
	for _, transport := range []v1beta1.Transport{v1beta1.TransportStdio, v1beta1.TransportSSE, v1beta1.TransportStreamableHTTP} {
		for name, authz := range map[string]*v1beta1.AuthzConfigRef{
			"none":   nil,
			"inline": {Type: v1beta1.AuthzConfigTypeInline, Inline: &v1beta1.InlineAuthzConfig{Policies: []string{"permit(principal, action, resource);"}}},
		} {
			server := newServer("web")
			server.Spec.Transport, server.Spec.AuthzConfig = transport, authz
			result, err := render.Render(render.Input{Server: server}, render.Options{})
			if err != nil {
				t.Fatalf("transport %s, authorization %s: %v", transport, name, err)
			}
			var refs []apply.ObjectRef
			for _, intent := range result.Intents {
				refs = append(refs, childRef(intent.Kind, "shop", intent.Name))
			}
			for _, absent := range result.Absent {
				refs = append(refs, childRef(absent.Kind, "shop", absent.Name))
			}
			for _, ref := range refs {
				if got := candidates(ref.Kind, ref.Name); !slices.Contains(got, "web") {
					t.Errorf("%s is rendered, and no child", ref)
				}
			}
		}
	}
}
