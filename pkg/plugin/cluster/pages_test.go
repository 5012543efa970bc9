// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
)

// server is an API server that answers each request by a function, with a code and an object.
type server func(r *http.Request) (code int, object any)

// RoundTrip implements http.RoundTripper.
func (a server) RoundTrip(r *http.Request) (*http.Response, error) {
	code, object := a(r)
	body, err := json.Marshal(object)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r,
	}, err
}

func clientOf(t *testing.T, api server) *Client {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	config, url, cache := os.DevNull, "http://apiserver.invalid", t.TempDir()
	flags.KubeConfig, flags.APIServer, flags.CacheDir = &config, &url, &cache
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.Transport = api
		return config
	}
	client, err := New(flags)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// many is an API server with MCPServers. With expires, it answers the second page with 410 once, as one does that has compacted the
// state which that belongs to.
func many(t *testing.T, count int, expires bool, pages *[]int) server {
	return func(r *http.Request) (int, any) {
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		if from > 0 && expires {
			return http.StatusGone, metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
			}
		}
		if from > 0 && limit != page {
			t.Errorf("page %d is asked for with the limit %d", from, limit)
		}
		to := count
		list := map[string]any{"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServerList", "metadata": map[string]any{}}
		if limit > 0 && from+limit < count {
			to = from + limit
			list["metadata"] = map[string]any{"continue": strconv.Itoa(to)}
		}
		items := []any{}
		for i := from; i < to; i++ {
			items = append(items, map[string]any{
				"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "metadata": map[string]any{"name": fmt.Sprintf("server-%04d", i), "namespace": "shop"},
			})
		}
		list["items"] = items
		*pages = append(*pages, len(items))
		return http.StatusOK, list
	}
}

// discovered answers what the kind of an API server with MCPServers is, and passes other requests on.
func discovered(to server) server {
	version := metav1.GroupVersionForDiscovery{GroupVersion: "toolhive.stacklok.dev/v1beta1", Version: "v1beta1"}
	return func(r *http.Request) (int, any) {
		switch r.URL.Path {
		case "/api":
			return http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}}
		case "/apis":
			return http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{{
				Name: "toolhive.stacklok.dev", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
			}}}
		case "/apis/" + version.GroupVersion:
			return http.StatusOK, metav1.APIResourceList{
				TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version.GroupVersion,
				APIResources: []metav1.APIResource{{Name: "mcpservers", SingularName: "mcpserver", Kind: "MCPServer", Namespaced: true, Verbs: metav1.Verbs{"list"}}},
			}
		}
		return to(r)
	}
}

// A list is read in pages, and each object once; also where the API server has forgotten where a page begins.
func TestAListIsReadInPages(t *testing.T) {
	lists := map[string]func(c *Client) (names []string, err error){
		"MCPServers": func(c *Client) (names []string, err error) {
			servers, err := c.Servers("")
			for _, server := range servers {
				names = append(names, server.Name)
			}
			return names, err
		},
		"a kind": func(c *Client) (names []string, err error) {
			objects, err := c.Named("", false, "mcpserver")
			for _, object := range objects {
				names = append(names, object.GetName())
			}
			return names, err
		},
		"names": func(c *Client) ([]string, error) { return c.Names("mcpserver") },
	}
	for name, test := range map[string]struct {
		count   int
		expires bool
		pages   []int
	}{
		"none":        {0, false, []int{0}},
		"one page":    {page, false, []int{page}},
		"three pages": {2*page + 1, false, []int{page, page, 1}},
		"expired":     {2*page + 1, true, []int{page, 2*page + 1}},
	} {
		for what, list := range lists {
			t.Run(name+" of "+what, func(t *testing.T) {
				var pages []int
				names, err := list(clientOf(t, discovered(many(t, test.count, test.expires, &pages))))
				if err != nil || len(names) != test.count || fmt.Sprint(pages) != fmt.Sprint(test.pages) {
					t.Fatalf("%d objects in pages %v, error %v", len(names), pages, err)
				}
				for i, found := range names {
					if found != fmt.Sprintf("server-%04d", i) {
						t.Fatalf("the object %d is %s", i, found)
					}
				}
			})
		}
	}
}

// Names are read where the user's namespace has them, and without the rest of the objects.
func TestNamesAreReadWithoutTheObjects(t *testing.T) {
	client := clientOf(t, discovered(func(r *http.Request) (int, any) {
		const want = "/apis/toolhive.stacklok.dev/v1beta1/namespaces/shop/mcpservers"
		if accept := r.Header.Get("Accept"); r.URL.Path != want || !strings.Contains(accept, "as=PartialObjectMetadataList") {
			t.Errorf("it asks for %s as %s", r.URL, accept)
		}
		return http.StatusOK, map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "items": []any{map[string]any{
			"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": map[string]any{"name": "web", "namespace": "shop"},
		}}}
	}))
	client.Namespace = "shop"
	if names, err := client.Names("mcpservers.toolhive.stacklok.dev"); err != nil || len(names) != 1 || names[0] != "web" {
		t.Errorf("it finds %v, error %v", names, err)
	}
	if names, err := client.Names("things"); err == nil {
		t.Errorf("of no kind it finds %v", names)
	}
}
