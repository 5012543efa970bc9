// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/workload"
	"github.com/freehold-dev/freehold/test/harness"
)

// intents is what Freehold wants of the children of an MCPServer as it is now.
func (w *world) intents(t *testing.T, name string) (*render.Result, error) {
	t.Helper()
	server, err := w.Servers.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	input := render.Input{Server: server}
	if authz := server.Spec.AuthzConfig; authz != nil && authz.ConfigMap != nil {
		input.AuthzConfigMap, err = w.Core.CoreV1().ConfigMaps(w.Name).Get(t.Context(), authz.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	pod, err := w.Core.CoreV1().Pods(w.Name).Get(t.Context(), render.OnlyBackendPod(name), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	input.BackendProcess = render.ProcessOf(workload.PodOf(pod))
	result, err := render.Render(input, render.Options{RunnerImage: images.ProxyRunner})
	if err == nil && len(result.Held) > 0 {
		return nil, &render.InvalidError{Problems: result.Held}
	}
	return result, err
}

// attempt gives the writer of an intent what ToolHive owns within the writer's claim, and asks the API server what an
// apply would then make of the object. Nothing of the object changes but its managedFields, and these are put back.
//
// Refused is the API server's answer to an apply without force. The changes are those of one with force.
func (w *world) attempt(t *testing.T, component harness.Component, server string, intent render.Intent) (found []change, refused error) {
	t.Helper()
	writer, ok := managers.Registry().Writer(intent.Writer, intent.Kind, "")
	if !ok {
		t.Fatalf("%s does not write %s", intent.Writer, intent.Kind)
	}
	live := w.MustObject(t, component, server)
	holder := ownership.Holder{Manager: intent.Writer, APIVersion: live.GetAPIVersion()}
	edit, err := ownership.Transfer(live, holder, time.Now(), func(owner ownership.Owner, path fieldpath.Path) bool {
		return managers.ClassOf(owner.Manager, owner.Subresource) == managers.ClassToolHive && writer.Claim.Covers(path)
	})
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		patch, err := edit.Patch(live)
		if err != nil {
			t.Fatal(err)
		}
		entries := live.GetManagedFields()
		live = w.editOwners(t.Context(), t, component, server, patch)
		defer func() {
			// The test's own context may have ended.
			w.editOwners(context.WithoutCancel(t.Context()), t, component, server, patchOf(t, entries))
		}()
	}
	settleTemplate(t, intent, live)
	wanted := asObject(t, intent.Config)
	apply := func(force bool) (*unstructured.Unstructured, error) {
		options := metav1.ApplyOptions{FieldManager: intent.Writer, Force: force, DryRun: []string{metav1.DryRunAll}}
		return w.Objects(component).Apply(t.Context(), live.GetName(), wanted, options)
	}
	_, refused = apply(false)
	after, err := apply(true)
	if err != nil {
		t.Errorf("%s of %s would be refused even with force: %v", component, server, err)
		return nil, err
	}
	return changes(live, after), refused
}

func patchOf(t *testing.T, entries []metav1.ManagedFieldsEntry) []byte {
	t.Helper()
	patch, err := json.Marshal([]harness.Operation{harness.Replace("/metadata/managedFields", entries)})
	if err != nil {
		t.Fatal(err)
	}
	return patch
}

func (w *world) editOwners(
	ctx context.Context, t *testing.T, component harness.Component, server string, patch []byte,
) *unstructured.Unstructured {
	t.Helper()
	options := metav1.PatchOptions{FieldManager: managers.Ownership}
	live, err := w.Objects(component).Patch(ctx, harness.FormOf(component).Name(server), types.JSONPatchType, patch, options)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// settleTemplate lets values stay that do not restart a pod by themselves, as Freehold's writers do.
func settleTemplate(t *testing.T, intent render.Intent, live *unstructured.Unstructured) {
	t.Helper()
	if intent.Writer != managers.Proxy && intent.Writer != managers.Backend {
		return
	}
	switch want := intent.Config.(type) {
	case *appsv1ac.StatefulSetApplyConfiguration:
		owned, err := appsv1ac.ExtractStatefulSet(typed[appsv1.StatefulSet](t, live), intent.Writer)
		if err != nil {
			t.Fatal(err)
		}
		render.PreserveBackend(want, render.KeepBackend(owned))
	case *appsv1ac.DeploymentApplyConfiguration:
		owned, err := appsv1ac.ExtractDeployment(typed[appsv1.Deployment](t, live), intent.Writer)
		if err != nil {
			t.Fatal(err)
		}
		render.PreserveProxy(want, render.KeepProxy(owned))
	}
}

func typed[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	converted := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, converted); err != nil {
		t.Fatal(err)
	}
	return converted
}

func asObject(t *testing.T, config runtime.ApplyConfiguration) *unstructured.Unstructured {
	t.Helper()
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return object
}
