// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-base/version"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// transport is an http.RoundTripper that keeps the request.
type transport struct{ request *http.Request }

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	t.request = request
	return nil, errors.New("not sent")
}

func TestUserAgentNamesTheWriter(t *testing.T) {
	for url, want := range map[string]string{
		"https://x/api?fieldManager=freehold-proxy&force=false": "freehold/v1 freehold-proxy",
		"https://x/api?fieldManager=":                           "freehold/v1",
		"https://x/api":                                         "freehold/v1",
	} {
		next := &transport{}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, url, http.NoBody)
		request.Header.Set("User-Agent", "freehold/v1")
		if response, err := (nameWriter{next}).RoundTrip(request); err == nil || response != nil {
			t.Fatalf("answer %v, %v is not that of the next one", response, err)
		}
		if got := next.request.UserAgent(); got != want {
			t.Errorf("%s is sent by %q, want %q", url, got, want)
		}
		if got := request.UserAgent(); got != "freehold/v1" {
			t.Errorf("the caller's request was changed to %q", got)
		}
	}
}

// kindsByResource are what the operator watches.
var kindsByResource = func() map[string][2]string {
	kinds := map[string][2]string{
		"pods": {"v1", "Pod"}, "replicasets": {"apps/v1", "ReplicaSet"}, "mcpservers": {"toolhive.stacklok.dev/v1beta1", "MCPServer"},
	}
	for _, config := range managers.Configs() {
		kinds[config.Resource] = [2]string{config.GroupVersion().String(), config.Kind}
	}
	for _, child := range inventory.Children() {
		kinds[child.Resource] = [2]string{child.APIVersion(), child.Kind.Kind}
	}
	return kinds
}()

// emptyCluster is an API server with nothing in it, or with one MCPServer. It keeps what it was asked, and by whom.
type emptyCluster struct {
	// server is the MCPServer, and apply answers what is applied to it.
	server map[string]any
	apply  http.HandlerFunc

	mu      sync.Mutex
	watched map[string]bool
	agents  map[string]bool
	others  []string
}

func (c *emptyCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	kind, known := kindsByResource[resource]
	c.mu.Lock()
	c.agents[r.UserAgent()] = true
	if !known || r.Method != http.MethodGet {
		c.others = append(c.others, r.Method+" "+r.URL.Path)
	}
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if c.apply != nil && r.Method == http.MethodPatch {
		c.apply(w, r)
		return
	}
	if resource == "events" && r.Method == http.MethodPost {
		// The recorder would log a refusal when the program has ended, while the test undoes what that has set of the log.
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": map[string]any{"name": "sent"}})
		return
	}
	if !known {
		http.NotFound(w, r)
		return
	}
	items := []any{}
	if resource == "mcpservers" && c.server != nil {
		items = append(items, c.server)
	}
	if r.URL.Query().Get("watch") == "" {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": kind[0], "kind": kind[1] + "List", "metadata": map[string]any{"resourceVersion": "5"}, "items": items,
		})
		return
	}
	for _, item := range items {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": item})
	}
	// A watch that has begun with all there is says so by a bookmark.
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{
		"apiVersion": kind[0], "kind": kind[1],
		"metadata": map[string]any{"resourceVersion": "5", "annotations": map[string]string{metav1.InitialEventsAnnotationKey: "true"}},
	}})
	w.(http.Flusher).Flush()
	c.mu.Lock()
	c.watched[resource] = true
	c.mu.Unlock()
	<-r.Context().Done()
}

// operate runs the program in the background, with this cluster until the test ends.
func (c *emptyCluster) operate(ctx context.Context, t *testing.T, args ...string) <-chan error {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig(server.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	resetLogs(t)
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, append([]string{"--kubeconfig=" + file, "--openshift=false", "--leader-elect=false"}, args...), environment{}.lookup, os.Stderr)
	}()
	return ended
}

// The whole program starts, watches, serves its endpoints, and ends when it is asked to.
func TestRunOperates(t *testing.T) {
	cluster := &emptyCluster{watched: map[string]bool{}, agents: map[string]bool{}}
	health, metrics := "127.0.0.1:"+freePort(t), "127.0.0.1:"+freePort(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := cluster.operate(ctx, t, "--health-probe-bind-address="+health, "--metrics-bind-address="+metrics)

	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		select {
		case err := <-ended:
			return false, fmt.Errorf("it ended early: %w", err)
		default:
		}
		cluster.mu.Lock()
		defer cluster.mu.Unlock()
		return len(cluster.watched) == len(kindsByResource), nil
	})
	if err != nil {
		t.Fatalf("not everything is watched, but %v: %v", cluster.watched, err)
	}
	if code, body := ask(t, http.MethodGet, "http://"+health+"/readyz"); code != http.StatusOK {
		t.Errorf("/readyz answers %d %q", code, body)
	}
	if code, body := ask(t, http.MethodGet, "http://"+metrics+"/metrics"); code != http.StatusOK || !strings.Contains(body, "workqueue_depth") {
		t.Errorf("/metrics answers %d without the queue's", code)
	}

	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	want := "freehold/" + version.Get().GitVersion
	if len(cluster.agents) != 1 || !cluster.agents[want] {
		t.Errorf("requests came from %v, want %s", cluster.agents, want)
	}
	if len(cluster.others) != 0 {
		t.Errorf("requests that neither list nor watch: %v", cluster.others)
	}
}
