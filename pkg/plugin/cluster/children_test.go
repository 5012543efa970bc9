// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

const digest = "0123456789abcdef"

// library is an API server with the ConfigMap of an MCPServer's RunConfig for each of its names, and with nothing else. It counts lists.
type library struct {
	mutex   sync.Mutex
	servers []string
	lists   []string
	accept  string
	refuses bool
}

func (l *library) serve(r *http.Request) (int, any) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	configMap := func(name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "shop"}}
	}
	_, name, one := strings.Cut(r.URL.Path, "/configmaps/")
	switch {
	case strings.HasSuffix(r.URL.Path, "/configmaps") && l.refuses:
		l.lists = append(l.lists, r.URL.Path)
		return http.StatusForbidden, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		}
	case strings.HasSuffix(r.URL.Path, "/configmaps"):
		l.lists, l.accept = append(l.lists, r.URL.Path), r.Header.Get("Accept")
		items := []any{}
		for _, server := range l.servers {
			item := configMap(server + "-runconfig-" + digest)
			item["apiVersion"], item["kind"] = "meta.k8s.io/v1", "PartialObjectMetadata"
			items = append(items, item)
		}
		return http.StatusOK, map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": map[string]any{}, "items": items}
	case r.Method == http.MethodPatch:
		return http.StatusOK, map[string]any{
			"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": v1beta1.MCPServerKind, "metadata": map[string]any{"name": "a", "namespace": "shop"},
		}
	case one:
		return http.StatusOK, configMap(name)
	}
	return http.StatusNotFound, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Details: &metav1.StatusDetails{Name: path.Base(r.URL.Path)},
	}
}

func mcpServer(namespace, name string) *v1beta1.MCPServer {
	return &v1beta1.MCPServer{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
}

// The names of a namespace's ConfigMaps are read once, however many MCPServers it has, and without what is in them.
func TestConfigMapsAreListedOnce(t *testing.T) {
	l := &library{servers: []string{"a", "b", "c"}}
	client := clientOf(t, l.serve)
	for _, name := range l.servers {
		children, err := client.Children(mcpServer("shop", name))
		want := fmt.Sprintf("configmap/%s-runconfig-%s", name, digest)
		if err != nil || len(children.Foreign) != 1 || children.Foreign[0].String() != want {
			t.Errorf("it finds %v, want %s; error %v", children, want, err)
		}
	}
	if len(l.lists) != 1 || !strings.Contains(l.accept, "as=PartialObjectMetadataList") {
		t.Errorf("it lists %v as %s", l.lists, l.accept)
	}
	if _, err := client.Children(mcpServer("other", "a")); err != nil || len(l.lists) != 2 {
		t.Errorf("it lists %v, error %v", l.lists, err)
	}
}

// A user who may not list ConfigMaps is refused once, and does not know which there are.
func TestConfigMapsAreRefusedOnce(t *testing.T) {
	l := &library{refuses: true}
	client := clientOf(t, l.serve)
	for range 2 {
		children, err := client.Children(mcpServer("shop", "a"))
		if err != nil || len(children.Unreadable) == 0 || children.Unreadable[0].Kind != managers.ConfigMap {
			t.Errorf("it finds %+v, error %v", children, err)
		}
		config, account := apply.NewObjectRef(managers.ConfigMap, "shop", "a-runconfig-"+digest), inventory.RunnerAccount.Ref("shop", "a")
		if !children.Hides(config) || children.Hides(account) {
			t.Errorf("it hides %s: %v, and %s: %v", config, children.Hides(config), account, children.Hides(account))
		}
	}
	if len(l.lists) != 1 {
		t.Errorf("it lists %v", l.lists)
	}
}

// After a write, on which ConfigMaps may follow, they are listed again; a dry run changes nothing.
func TestConfigMapsAreListedAgainAfterAWrite(t *testing.T) {
	l := &library{servers: []string{"a"}}
	client := clientOf(t, l.serve)
	server := mcpServer("shop", "a")
	annotate := func(dryRun bool) func() error {
		return func() error {
			_, err := client.Annotate(server, v1beta1.AnnotationYield, "replicas", dryRun)
			return err
		}
	}
	ref := apply.NewObjectRef(managers.MCPServer, "shop", "a")
	want := 1
	for _, step := range []struct {
		name  string
		write func() error
		again bool
	}{
		{"nothing", func() error { return nil }, false},
		{"a dry run", annotate(true), false},
		{"an annotation", annotate(false), true},
		{"an edit of claims", func() error { _, err := client.EditClaims(ref, []byte("[]")); return err }, true},
		{"an apply", func() error { _, err := client.Apply(ref, "", map[string]any{}); return err }, true},
	} {
		if step.again {
			want++
		}
		if err := step.write(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if _, err := client.Children(server); err != nil || len(l.lists) != want {
			t.Errorf("after %s there were %d lists, want %d; error %v", step.name, len(l.lists), want, err)
		}
	}
}
