// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configcontroller

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
)

// referring is an object that refers to configurations.
func referring(kind string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": kind, "spec": spec,
		"metadata": map[string]any{"name": "it", "namespace": "shop", "uid": "uid-of-it", "resourceVersion": "1"},
	}}
}

func refTo(name string) map[string]any { return map[string]any{"name": name} }

func TestEveryReferenceOfToolHivesKindsIsFound(t *testing.T) {
	login, tools := configs.Named{Kind: configs.ExternalAuth, Name: "login"}, configs.Named{Kind: configs.Tool, Name: "tools"}
	idp, policy := configs.Named{Kind: configs.OIDC, Name: "idp"}, configs.Named{Kind: configs.AuthzConfig, Name: "policy"}
	traces, team := configs.Named{Kind: configs.Telemetry, Name: "traces"}, configs.Named{Kind: configs.Group, Name: "team"}
	all := map[string]any{
		"oidcConfigRef": refTo("idp"), "authzConfigRef": refTo("policy"), "externalAuthConfigRef": refTo("login"), "toolConfigRef": refTo("tools"),
		"telemetryConfigRef": refTo("traces"), "groupRef": refTo("team"), "webhookConfigRef": refTo("hooks"),
	}
	for name, c := range map[string]struct {
		kind string
		spec map[string]any
		want []configs.Named
	}{
		"a proxy": {remoteProxyKind, all, []configs.Named{idp, policy, login, tools, traces, team}},
		"a proxy's authorization server": {
			remoteProxyKind, map[string]any{"authServerRef": map[string]any{"name": "login", "kind": "MCPExternalAuthConfig"}}, []configs.Named{login},
		},
		"another kind": {remoteProxyKind, map[string]any{"authServerRef": map[string]any{"name": "login", "kind": "Other"}}, nil},
		"an entry":     {entryKind, all, []configs.Named{login, team}},
		"a virtual server": {virtualServerKind, map[string]any{
			"incomingAuth": map[string]any{"oidcConfigRef": refTo("idp"), "authzConfigRef": refTo("policy")}, "telemetryConfigRef": refTo("traces"),
			"config": map[string]any{"aggregation": map[string]any{"tools": []any{map[string]any{"toolConfigRef": refTo("tools")}, map[string]any{}}}},
		}, []configs.Named{idp, policy, tools, traces}},
		"its default": {virtualServerKind, map[string]any{
			"outgoingAuth": map[string]any{"default": map[string]any{"externalAuthConfigRef": refTo("login")}},
		}, []configs.Named{login}},
		"its backends": {virtualServerKind, map[string]any{
			"outgoingAuth": map[string]any{"backends": map[string]any{"a": map[string]any{"externalAuthConfigRef": refTo("login")}, "b": "odd"}},
		}, []configs.Named{login}},
		"nothing": {virtualServerKind, nil, nil},
	} {
		at := slices.IndexFunc(referrerKinds, func(of referrerKind) bool { return of.kind == c.kind })
		reduced, err := referrerKinds[at].reduce(referring(c.kind, c.spec))
		if err != nil {
			t.Fatal(err)
		}
		found := reduced.(*referrer)
		if diff := cmp.Diff(c.want, found.to); diff != "" || found.Name != "it" || found.UID != types.UID("uid-of-it") {
			t.Errorf("%s: %s/%s refers to (-want +got):\n%s", name, found.Namespace, found.Name, diff)
		}
		if again, err := referrerKinds[at].reduce(reduced); err != nil || again != reduced {
			t.Errorf("%s: reduced again it is %v, %v", name, again, err)
		}
	}
}

func TestBlockedByIsBounded(t *testing.T) {
	var users []configs.Named
	for range 1000 {
		users = append(users, configs.Named{Kind: v1beta1.MCPServerKind, Name: strings.Repeat("x", 60)})
	}
	if text := blockedBy(users); len(text) > 700 || !strings.HasSuffix(text, " more)") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}
