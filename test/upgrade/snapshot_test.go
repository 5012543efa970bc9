// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

// snapshot is every object of a namespace, by resource and name.
type snapshot map[string]*unstructured.Unstructured

// passing are resources that come and go by themselves.
var passing = []string{"events", "leases"}

// look reads every object of the namespace, of every kind that there is: what is replaced shows, whoever has made it.
func (s *scene) look(t *testing.T) snapshot {
	t.Helper()
	discoverer, err := discovery.NewDiscoveryClientForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := discoverer.ServerPreferredNamespacedResources()
	if err != nil {
		t.Fatal(err)
	}
	found := snapshot{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if slices.Contains(passing, resource.Name) || !slices.Contains(resource.Verbs, "list") {
				continue
			}
			objects, err := client.Resource(version.WithResource(resource.Name)).Namespace(s.Name).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range objects.Items {
				found[resource.Name+"/"+objects.Items[i].GetName()] = &objects.Items[i]
			}
		}
	}
	if len(found) == 0 {
		t.Fatal("the namespace is empty")
	}
	return found
}

// pods returns the UIDs of the pods, by name.
func (s snapshot) pods() map[string]string {
	found := map[string]string{}
	for name, object := range s {
		if strings.HasPrefix(name, "pods/") {
			found[name] = string(object.GetUID())
		}
	}
	return found
}

// written are the objects that are there in both, and in another version.
func (s snapshot) written(after snapshot) (names []string) {
	for name, before := range s {
		if now := after[name]; now != nil && now.GetResourceVersion() != before.GetResourceVersion() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// changed returns the paths of the fields that differ between two versions of an object.
func changed(before, after *unstructured.Unstructured) (paths []string) {
	was, is := map[string]string{}, map[string]string{}
	for _, side := range []struct {
		leaves map[string]string
		object *unstructured.Unstructured
	}{{was, before}, {is, after}} {
		content := side.object.DeepCopy().Object
		for _, field := range []string{"managedFields", "resourceVersion"} {
			unstructured.RemoveNestedField(content, "metadata", field)
		}
		leavesOf(side.leaves, "", content)
	}
	all := maps.Clone(was)
	maps.Copy(all, is)
	for path := range all {
		if was[path] != is[path] {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// leavesOf lists the leaves of a document by their paths; conditions go by their types.
func leavesOf(leaves map[string]string, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			leavesOf(leaves, strings.TrimPrefix(path+"."+key, "."), below)
		}
	case []any:
		for i, below := range value {
			key := fmt.Sprint(i)
			if item, ok := below.(map[string]any); ok && item["type"] != nil && strings.HasSuffix(path, "conditions") {
				key = fmt.Sprint(item["type"])
			}
			leavesOf(leaves, path+"["+key+"]", below)
		}
	default:
		leaves[path] = fmt.Sprint(value)
	}
}

// owners are the claims on an object: who owns what, and not since when, but for some fields.
func owners(t *testing.T, object *unstructured.Unstructured, but ...string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, entry := range object.GetManagedFields() {
		fields, err := ownership.Fields(&entry)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.Join([]string{entry.Manager, string(entry.Operation), entry.APIVersion, entry.Subresource}, " ")] = slices.DeleteFunc(
			harness.Paths(fields), func(path string) bool { return slices.Contains(but, strings.TrimPrefix(path, ".")) })
	}
	return found
}
