// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// space is a namespace with configs.
type space struct {
	*harness.Namespace
	dynamic dynamic.Interface
}

func newSpace(t *testing.T) *space {
	t.Helper()
	client, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &space{env.Namespace(t), client}
}

// versions are those of kinds that are not v1beta1.
var versions = map[string]string{"mcpwebhookconfigs": "v1alpha1"}

func (s *space) of(resource string) dynamic.ResourceInterface {
	version := "v1beta1"
	if other := versions[resource]; other != "" {
		version = other
	}
	return s.dynamic.Resource(schema.GroupVersionResource{Group: toolhive.GroupName, Version: version, Resource: resource}).Namespace(s.Name)
}

// make creates an object of a kind.
func (s *space) make(t *testing.T, kind, resource, name, spec string) *unstructured.Unstructured {
	t.Helper()
	version := "v1beta1"
	if other := versions[resource]; other != "" {
		version = other
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": toolhive.GroupName + "/" + version, "kind": kind, "metadata": map[string]any{"name": name},
	}}
	var content map[string]any
	if err := json.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	object.Object["spec"] = content
	made, err := s.of(resource).Create(t.Context(), object, metav1.CreateOptions{FieldManager: "kubectl-create"})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

const oidcSpec = `{"type": "inline", "inline": {"issuer": "https://idp.example.com"}}`

// idp makes an MCPOIDCConfig of that name.
func (s *space) idp(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	return s.make(t, "MCPOIDCConfig", "mcpoidcconfigs", "idp", oidcSpec)
}

// patch merges into an object as its user does.
func (s *space) patch(t *testing.T, resource, name, patch string) {
	t.Helper()
	_, err := s.of(resource).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	if err != nil {
		t.Fatal(err)
	}
}

// keepAsToolHive leaves an object as ToolHive's operator does: with its finalizer, by a merge patch, and a status, by a PUT.
func (s *space) keepAsToolHive(t *testing.T, resource, name, finalizer, status string) {
	t.Helper()
	options := metav1.PatchOptions{FieldManager: managers.ToolHiveOperator}
	live, err := s.of(resource).Patch(t.Context(), name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata": {"finalizers": [%q]}}`, finalizer), options)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.putStatus(t.Context(), resource, live, status); err != nil {
		t.Fatal(err)
	}
}

// putStatus replaces a status as ToolHive's operator does.
func (s *space) putStatus(ctx context.Context, resource string, live *unstructured.Unstructured, status string) error {
	var content map[string]any
	if err := json.Unmarshal([]byte(status), &content); err != nil {
		return err
	}
	live.Object["status"] = content
	_, err := s.of(resource).UpdateStatus(ctx, live, metav1.UpdateOptions{FieldManager: managers.ToolHiveOperator})
	return err
}

// await waits until an object is as a check wants it.
func (s *space) await(t *testing.T, resource, name, what string, check func(live *unstructured.Unstructured) error) (live *unstructured.Unstructured) {
	t.Helper()
	harness.EventuallyWithin(t, harness.CrowdTimeout, what, func(ctx context.Context) (err error) {
		if live, err = s.of(resource).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return check(live)
	})
	return live
}

// awaitCondition waits for a condition.
func (s *space) awaitCondition(t *testing.T, resource, name, conditionType, status, reason string) *unstructured.Unstructured {
	t.Helper()
	return s.await(t, resource, name, conditionType+"="+status, func(live *unstructured.Unstructured) error {
		found := condition(live, conditionType)
		if found["status"] != status || found["reason"] != reason {
			return fmt.Errorf("conditions %v", valueAt(live, "status.conditions"))
		}
		return nil
	})
}

// awaitGone waits until an object is no more.
func (s *space) awaitGone(t *testing.T, resource, name string) {
	t.Helper()
	harness.Eventually(t, "it is gone", func(ctx context.Context) error {
		live, err := s.of(resource).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there with finalizers %v: %v: %w", live.GetFinalizers(), live.Object["status"], err)
	})
}

func (s *space) delete(t *testing.T, resource, name string) {
	t.Helper()
	if err := s.of(resource).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// condition returns a condition of an object; nil when it has none of the type.
func condition(live *unstructured.Unstructured, conditionType string) map[string]any {
	all, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, c := range all {
		if found, ok := c.(map[string]any); ok && found["type"] == conditionType {
			return found
		}
	}
	return nil
}

// valueAt returns the value at a path such as status.phase; nil when there is none.
func valueAt(live *unstructured.Unstructured, path string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(live.Object, strings.Split(path, ".")...)
	return value
}

// about wants requests about what MCPServers refer to.
func about(e *audit.Event) bool {
	return slices.ContainsFunc(managers.Configs(), func(config managers.Config) bool {
		return config.Group == e.Group && config.Resource == e.Resource
	})
}

// configWrites returns the operator's writes to configs and groups since a mark, in short.
func (s *space) configWrites(t *testing.T, since audit.Mark) (writes []string) {
	t.Helper()
	for _, e := range s.Writes(t, since) {
		if about(e) {
			writes = append(writes, strings.TrimSpace(fmt.Sprintf("%s %s/%s %s %d", e.FieldManager, e.Resource, e.Name, e.Subresource, e.Code)))
		}
	}
	return writes
}

// awaitOwner waits until the operator tells that so many objects are somebody's.
func awaitOwner(t *testing.T, p *operator.Process, owner string, count int) {
	t.Helper()
	harness.EventuallyWithin(t, harness.CrowdTimeout, fmt.Sprintf("%d are %s's", count, owner), func(ctx context.Context) error {
		got, err := harness.Metric(ctx, p, "freehold_configs", fmt.Sprintf("owner=%q", owner))
		if err == nil && int(got) != count {
			err = fmt.Errorf("%v are", got)
		}
		return err
	})
}

// events returns the reasons of the events about an object, in their order.
func (s *space) events(t *testing.T, kind, name string) (reasons []string) {
	t.Helper()
	list, err := env.Core.EventsV1().Events(s.Name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.Kind == kind && e.Regarding.Name == name {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// serveOthers makes the API server serve ToolHive's kinds that Freehold only counts, with schemas that take anything.
var serveOthers = sync.OnceValue(func() error {
	ctx := context.Background()
	client, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		return err
	}
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for kind, resource := range map[string]string{
		"VirtualMCPServer": "virtualmcpservers", "MCPRemoteProxy": "mcpremoteproxies", "MCPServerEntry": "mcpserverentries",
	} {
		definition := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": resource + "." + toolhive.GroupName},
			"spec": map[string]any{
				"group": toolhive.GroupName, "scope": "Namespaced",
				"names": map[string]any{"kind": kind, "plural": resource},
				"versions": []any{map[string]any{
					"name": "v1beta1", "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{
						"type": "object", "x-kubernetes-preserve-unknown-fields": true,
					}},
				}},
			},
		}}
		if _, err := definitions.Create(ctx, definition, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
})

// withOthers makes the API server serve the kinds, and returns when it does.
func withOthers(t *testing.T, s *space) {
	t.Helper()
	if err := serveOthers(); err != nil {
		t.Fatal(err)
	}
	for _, resource := range []string{"virtualmcpservers", "mcpremoteproxies", "mcpserverentries"} {
		harness.Eventually(t, resource+" are served", func(ctx context.Context) error {
			_, err := s.of(resource).List(ctx, metav1.ListOptions{})
			return err
		})
	}
}
