// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/freehold-dev/freehold/hack/operator"
)

// TestEachManifestCanBeAppliedByTwo applies every object of deploy/ under two field managers, such as kubectl and Helm. The second meets
// no conflict: where the API server completes a value that is atomic, the manifest has it complete.
func TestEachManifestCanBeAppliedByTwo(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	client, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(env.Core.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	kinds := map[string]int{}
	for object, file := range manifestObjects(t) {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) && notServed[kind.Group] {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		kinds[kind.Kind]++
		// Other tests share the cluster: what has no namespace gets a name of its own, but for definitions, which are there.
		var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
		own := kind.Kind != "CustomResourceDefinition"
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			object.SetNamespace(ns.Name)
			resource = client.Resource(mapping.Resource).Namespace(ns.Name)
		} else if own {
			object.SetName(object.GetName() + "-" + ns.Name)
		}
		name := object.GetName()
		if own {
			if _, err := resource.Apply(t.Context(), name, object, metav1.ApplyOptions{FieldManager: "first"}); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		again := metav1.ApplyOptions{FieldManager: "second", DryRun: []string{metav1.DryRunAll}}
		if _, err := resource.Apply(t.Context(), name, object, again); err != nil {
			t.Errorf("%s: a second field manager cannot apply the %s %s: %v", file, kind.Kind, name, err)
		}
		if own {
			if err := resource.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	}
	for _, kind := range []string{"Deployment", "ClusterRole", "MCPServer", "CustomResourceDefinition", "FlowSchema", "ResourceQuota"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s was applied, of %v", kind, kinds)
		}
	}
}

// notServed are the groups of kinds that the cluster does not have: those of other operators, and files that only programs read.
var notServed = map[string]bool{
	"monitoring.coreos.com": true, "cert-manager.io": true, "kustomize.config.k8s.io": true,
}

// manifestObjects returns every object of deploy/ once, with a file that has it. Templates, of krew and of the chart, have none.
func manifestObjects(t *testing.T) map[*unstructured.Unstructured]string {
	t.Helper()
	found, seen := map[*unstructured.Unstructured]string{}, map[string]bool{}
	err := filepath.WalkDir(filepath.FromSlash("../../../deploy"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" || slices.Contains([]string{"krew", "templates"}, filepath.Base(filepath.Dir(path))) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains("\n"+string(text), "\nkind: ") { // Some files have no objects.
			return err
		}
		objects, err := operator.Decode(text)
		if err != nil {
			return err
		}
		for _, object := range objects {
			content, err := json.Marshal(object)
			if err != nil {
				return err
			}
			if object.GetKind() != "" && !seen[string(content)] {
				seen[string(content)], found[object] = true, path
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
