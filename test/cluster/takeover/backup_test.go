// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"encoding/json"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// backupTool is the field manager of a client that restores objects from a backup.
const backupTool = "velero-server"

// TestRestoredBackupIsNoTakeover deletes an MCPServer that ToolHive has never written, and restores it and its children as Velero does, while
// the operator runs: with the UIDs of their earlier owners, and with the managedFields of then. No takeover is reported, and the children
// belong to the restored MCPServer.
func TestRestoredBackupIsNoTakeover(t *testing.T) {
	t.Parallel()
	const name = "restored"
	for order, serverFirst := range map[string]bool{"children first": false, "the MCPServer first": true} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			ns.Operate(t)
			server := ns.Create(t, harness.ServerWithAllChildren(name))
			ns.AwaitSettled(t, name)
			ns.AwaitCalm(t, name)
			saved := ns.MustObjectsOf(t, name)
			ns.Delete(t, name, metav1.DeletePropagationForeground)
			ns.AwaitGone(t, name)
			ns.AwaitNothingLeft(t, name)

			components := slices.DeleteFunc(harness.ComponentsOf(server), func(c harness.Component) bool { return c == harness.ServerItself })
			if serverFirst {
				components = slices.Insert(components, 0, harness.ServerItself)
			} else {
				components = append(components, harness.ServerItself)
			}
			for _, component := range components {
				restoreSaved(t, ns, component, saved[component])
			}
			restored := ns.AwaitSettled(t, name)
			ns.AwaitCalm(t, name)
			if told := meta.FindStatusCondition(restored.Status.Conditions, v1beta1.ConditionTakenOver); told != nil || restored.UID == server.UID {
				t.Errorf("MCPServer %s, before %s, has the condition %v", restored.UID, server.UID, told)
			}
			ns.AwaitNoConflict(t, name)
			for component, object := range ns.MustObjectsOf(t, name) {
				if component != harness.ServerItself && !metav1.IsControlledBy(object, restored) {
					t.Errorf("the %s belongs to %v", component, object.GetOwnerReferences())
				}
			}
			events, err := ns.Core.EventsV1().Events(ns.Name).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, event := range events.Items {
				if event.Reason == v1beta1.ReasonTakingOver || event.Reason == v1beta1.ReasonTakenOver {
					t.Errorf("event %s: %s", event.Reason, event.Note)
				}
			}
			ns.Quiet(t, ns.Mark(t), harness.Calm)
		})
	}
}

// restoreSaved creates an object without its status, and puts its managedFields back. The operator may have created it before.
func restoreSaved(t *testing.T, ns *harness.Namespace, component harness.Component, saved *unstructured.Unstructured) {
	t.Helper()
	object := saved.DeepCopy()
	delete(object.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	if address, _, _ := unstructured.NestedString(object.Object, "spec", "clusterIP"); address != "None" {
		unstructured.RemoveNestedField(object.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(object.Object, "spec", "clusterIPs")
	}
	if err := unstructured.SetNestedField(object.Object, "r", "metadata", "labels", "velero.io/restore-name"); err != nil {
		t.Fatal(err)
	}
	_, err := ns.Objects(component).Create(t.Context(), object, metav1.CreateOptions{FieldManager: backupTool})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": saved.GetManagedFields()}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = ns.Objects(component).Patch(t.Context(), object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: backupTool})
	if err != nil && !apierrors.IsNotFound(err) { // The garbage collector deletes what refers to an owner that does not exist.
		t.Fatal(err)
	}
}
