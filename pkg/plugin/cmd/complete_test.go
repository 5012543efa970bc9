// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// twoProducts is an API server with MCPServers of two products: theirs of kagent, which comes first, and web of ToolHive.
type twoProducts struct{}

// RoundTrip implements http.RoundTripper.
func (twoProducts) RoundTrip(request *http.Request) (*http.Response, error) {
	product, ofProduct := strings.CutPrefix(request.URL.Path, "/apis/")
	group, rest, _ := strings.Cut(product, "/")
	var answer any
	switch {
	case !ofProduct && request.URL.Path == "/apis":
		groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, name := range []string{"kagent.dev", "toolhive.stacklok.dev"} {
			version := metav1.GroupVersionForDiscovery{GroupVersion: name + "/v1beta1", Version: "v1beta1"}
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		}
		answer = groups
	case !ofProduct:
		answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}}
	case rest == "v1beta1":
		answer = metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: product,
			APIResources: []metav1.APIResource{{Name: "mcpservers", SingularName: "mcpserver", Kind: "MCPServer", Namespaced: true, Verbs: metav1.Verbs{"list"}}},
		}
	default:
		name := map[string]string{"kagent.dev": "theirs", "toolhive.stacklok.dev": "web"}[group]
		answer = content{"apiVersion": group + "/v1beta1", "kind": "MCPServerList", "items": []any{content{
			"apiVersion": group + "/v1beta1", "kind": "MCPServer", "metadata": content{"name": name, "namespace": "shop"},
		}}}
	}
	body, err := json.Marshal(answer)
	return &http.Response{
		StatusCode: http.StatusOK, Request: request, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, err
}

// Verbs that mean ToolHive's MCPServers complete the names of these, also where another product has a kind of that name. owners takes any
// kind, and resolves it as kubectl does.
func TestCompletionIsOfToolHivesKind(t *testing.T) {
	for line, want := range map[string][]string{
		"diff mcp":              {"mcpserver/web"},
		"conflicts ":            {"mcpserver/web"},
		"conflicts mcpserver/":  {"mcpserver/web"},
		"explain mcpservers/":   {"mcpservers/web"},
		"owners mcpserver/":     {"mcpserver/theirs"},
		"owners mcpservers.kag": {"mcpservers.kagent.dev"},
	} {
		code, out, errOut := runExactly(t, twoProducts{}, slices.Concat([]string{"__complete"}, optionsFor(t), strings.Split(line, " ")))
		offered, _, _ := strings.Cut(out, ":")
		if diff := cmp.Diff(want, strings.Fields(offered)); code != ExitDone || diff != "" {
			t.Errorf("%q ends with %d (-want +got):\n%s%s", line, code, diff, errOut)
		}
	}
}
