// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// answering answers each request with what is not there, and records the requests.
type answering struct{ requests []*http.Request }

func (a *answering) RoundTrip(request *http.Request) (*http.Response, error) {
	a.requests = append(a.requests, request)
	return &http.Response{
		StatusCode: http.StatusNotFound, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"it"}}`)),
	}, nil
}

// FuzzServerArgument: whatever a user names, the API server is asked for one MCPServer of the user's namespace, with what stands behind
// the kind as its name, or for nothing.
func FuzzServerArgument(f *testing.F) {
	for _, argument := range []string{
		"web", "mcpserver/web", "MCPServers/web", "mcpservers.toolhive.stacklok.dev/web", "mcpserver.v1beta1.toolhive.stacklok.dev/web",
		"deployment/web", "", "/", "mcpserver/", "mcpserver/a/b", "mcpserver/..", "mcpserver/.", "mcpserver/../../secrets/x", "a?dryRun=All",
		"a%2fb", "a#b", "é", "a b", "\x00", "\xff", "mcpserver/a;b",
	} {
		f.Add(argument)
	}
	f.Fuzz(func(t *testing.T, argument string) {
		api := &answering{}
		flags := genericclioptions.NewConfigFlags(false)
		*flags.APIServer, *flags.Namespace, *flags.KubeConfig = "https://api.invalid", "tools", ""
		flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
			config.Transport, config.TLSClientConfig, config.QPS = api, rest.TLSClientConfig{}, -1
			return config
		}
		client := &Client{getter: flags, Namespace: "tools"}
		if server, err := client.Server(argument); err == nil {
			t.Fatalf("%q is %v", argument, server)
		}
		kind, name, qualified := strings.Cut(argument, "/")
		if !qualified {
			name = argument
		}
		switch {
		case len(api.requests) > 1:
			t.Fatalf("%q leads to %d requests", argument, len(api.requests))
		case qualified && !strings.HasPrefix(strings.ToLower(kind), "mcpserver") && len(api.requests) > 0:
			t.Fatalf("%q is taken for an MCPServer", argument)
		case len(api.requests) == 1:
			request := api.requests[0]
			want := "/apis/" + v1beta1.SchemeGroupVersion.String() + "/namespaces/tools/mcpservers/" + name
			if request.Method != http.MethodGet || request.URL.Path != want || strings.Contains(name, "/") || request.URL.RawQuery != "" {
				t.Fatalf("%q leads to %s %s", argument, request.Method, request.URL)
			}
		}
	})
}
