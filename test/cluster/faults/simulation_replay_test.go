// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/history"
	"github.com/freehold-dev/freehold/test/harness"
)

// histories are what the tests of test/simulation recorded.
const histories = "../../simulation/testdata/histories"

// TestReplay does what was done in a simulated cluster, and compares the states in which both come to rest.
func TestReplay(t *testing.T) {
	all, err := history.Read(histories)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("there are no histories")
	}
	seen := &differencesSeen{}
	t.Run("all", func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			t.Run(name, func(t *testing.T) {
				harness.Long(t)
				t.Parallel()
				replay(t, all[name], seen)
			})
		}
	})
	if !t.Failed() && !testing.Short() { // In a short run, only some histories have their turn.
		seen.check(t)
	}
}

// replay lets an operator see a history.
func replay(t *testing.T, h *history.History, seen *differencesSeen) {
	t.Helper()
	ns := env.NamespaceNamed(t, h.Namespace)
	client, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	ns.Operate(t, "--configs=freehold") // The simulation has the time to wait until ToolHive's operator might have come.
	simulated := history.State{}
	for i := range h.Acts {
		act := &h.Acts[i]
		if err := carryOut(t.Context(), client, h.Namespace, act); err != nil {
			t.Fatalf("%v: %v", act, err)
		}
		ns.AwaitRest(t)
		simulated = simulated.With(act.Changes)
		want := leavesOf(t, simulated, seen)
		// A busy machine may rest while there is something to do.
		harness.Eventually(t, "the state is that of the simulation, after "+act.String(), func(ctx context.Context) error {
			state, err := stateOf(ctx, client, h.Namespace)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(want, leavesOf(t, state, seen)); diff != "" {
				return fmt.Errorf("it is not (-simulated +real):\n%s", diff)
			}
			return nil
		})
	}
}

// carryOut sends the request that an act is.
func carryOut(ctx context.Context, client dynamic.Interface, namespace string, act *history.Act) error {
	objects := client.Resource(act.Resource).Namespace(namespace)
	switch act.Verb {
	case "create":
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(act.Body); err != nil {
			return err
		}
		_, err := objects.Create(ctx, obj, metav1.CreateOptions{FieldManager: act.Manager})
		return err
	case "patch":
		options := metav1.PatchOptions{FieldManager: act.Manager}
		if act.PatchType == types.ApplyYAMLPatchType {
			options.Force = &act.Force
		}
		var subresources []string
		if act.Subresource != "" {
			subresources = append(subresources, act.Subresource)
		}
		_, err := objects.Patch(ctx, act.Name, act.PatchType, act.Body, options, subresources...)
		return err
	case "delete":
		var options metav1.DeleteOptions
		if err := json.Unmarshal(act.Body, &options); err != nil {
			return err
		}
		return objects.Delete(ctx, act.Name, options)
	}
	return errors.New("there is no such verb")
}

// builtins are the resources of Kubernetes in a state, and those whose UIDs may be in it.
var builtins = []schema.GroupVersionResource{
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "serviceaccounts"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
}

// stateOf reads the state of a namespace.
func stateOf(ctx context.Context, client dynamic.Interface, namespace string) (history.State, error) {
	resources := slices.Clone(builtins)
	version := v1beta1.SchemeGroupVersion
	custom, err := env.Core.Discovery().ServerResourcesForGroupVersion(version.String())
	if err != nil {
		return nil, err
	}
	for _, r := range custom.APIResources {
		if slices.Contains(r.Verbs, "list") {
			resources = append(resources, version.WithResource(r.Name))
		}
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources {
		list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	}
	return history.StateOf(objects)
}
