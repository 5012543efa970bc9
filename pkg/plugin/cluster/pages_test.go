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
	config, url := os.DevNull, "http://apiserver.invalid"
	flags.KubeConfig, flags.APIServer = &config, &url
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

// A list is read in pages, and each object once; also where the API server has forgotten where a page begins.
func TestPages(t *testing.T) {
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
		t.Run(name, func(t *testing.T) {
			var pages []int
			servers, err := clientOf(t, many(t, test.count, test.expires, &pages)).Servers("")
			if err != nil || len(servers) != test.count || fmt.Sprint(pages) != fmt.Sprint(test.pages) {
				t.Fatalf("%d MCPServers in pages %v, error %v", len(servers), pages, err)
			}
			for i, found := range servers {
				if found.Name != fmt.Sprintf("server-%04d", i) {
					t.Fatalf("the MCPServer %d is %s", i, found.Name)
				}
			}
		})
	}
}
