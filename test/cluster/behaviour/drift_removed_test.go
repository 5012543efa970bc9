// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// removal is a field of ours that somebody takes away.
type removal struct {
	name  string
	paths []string
	// rolls tells that pods are replaced, and with them perhaps the status.
	rolls bool
	// confirmed tells that the MCPServer is confirmed first: one more apply, which changes nothing.
	confirmed bool
}

// template is where the pod of a workload is.
const (
	template = "/spec/template"
)

// removals are fields of every component. What the API server fills in again, like the type of a Service, cannot be
// removed; what must be there, like an image, cannot either; and a key of an atomic map or an element of an atomic list
// can only be changed, see changes.
var removals = map[harness.Component][]removal{
	harness.ProxyAccount: {
		{name: "pull secrets", paths: []string{"/imagePullSecrets"}},
	},
	harness.BackendAccount: {
		{name: "pull secrets", paths: []string{"/imagePullSecrets"}},
	},
	harness.ProxyRole: {}, // The API server writes rules: null for none, which is a change.
	harness.ProxyBinding: {
		{name: "subjects", paths: []string{"/subjects"}},
	},
	harness.RunConfig: {
		{name: "a label", paths: []string{"/metadata/labels/toolhive.stacklok.io~1component"}},
		{name: "checksum", paths: []string{"/metadata/annotations/toolhive.stacklok.dev~1content-checksum"}},
	},
	harness.InlineAuthz: {
		{name: "labels", paths: []string{"/metadata/labels"}},
	},
	harness.HeadlessService: {
		{name: "ports", paths: []string{"/spec/ports"}},
		{name: "selector", paths: []string{"/spec/selector"}},
	},
	harness.BackendService: {
		{name: "a label", paths: []string{"/metadata/labels/toolhive-name"}},
		{name: "selector", paths: []string{"/spec/selector"}},
	},
	harness.ProxyService: {
		{name: "labels", paths: []string{"/metadata/labels"}},
		{name: "name of the port", paths: []string{"/spec/ports/0/name"}},
		{name: "selector", paths: []string{"/spec/selector"}},
	},
	harness.Backend: {
		{name: "a label", paths: []string{"/metadata/labels/toolhive-transport"}},
		{name: "labels", paths: []string{"/metadata/labels"}},
		{name: "a label of the pods", paths: []string{template + "/metadata/labels/toolhive-name"}, rolls: true},
		{name: "gate", paths: []string{template + "/metadata/annotations"}, rolls: true},
		{name: "args", paths: []string{harness.FirstContainer + "/args"}, rolls: true},
		{name: "a variable", paths: []string{harness.FirstContainer + "/env/0"}, rolls: true},
		{name: "environment", paths: []string{harness.FirstContainer + "/env"}, rolls: true},
		{name: "security context", paths: []string{harness.FirstContainer + "/securityContext"}, rolls: true},
		{
			// The API server keeps the two alike.
			name: "service account", rolls: true,
			paths: []string{template + "/spec/serviceAccountName", template + "/spec/serviceAccount"},
		},
	},
	harness.Proxy: {
		{name: "a label", paths: []string{"/metadata/labels/toolhive-name"}},
		{name: "labels", paths: []string{"/metadata/labels"}},
		{name: "checksum", paths: []string{template + "/metadata/annotations"}, rolls: true},
		{name: "a variable", paths: []string{harness.FirstContainer + "/env/0"}, rolls: true},
		{name: "limits", paths: []string{harness.FirstContainer + "/resources/limits"}, rolls: true},
		{name: "a probe", paths: []string{harness.FirstContainer + "/readinessProbe"}, rolls: true},
		{name: "a mount", paths: []string{harness.FirstContainer + "/volumeMounts/0"}, rolls: true},
		{name: "a part of a security context", paths: []string{harness.FirstContainer + "/securityContext/runAsUser"}, rolls: true},
		{name: "pull secrets", paths: []string{template + "/spec/imagePullSecrets"}, rolls: true},
	},
}

// ofEveryComponent are fields that all children have.
var ofEveryComponent = []removal{
	{name: "source", paths: []string{"/metadata/annotations/freehold.dev~1source"}},
	{name: "owner", paths: []string{"/metadata/ownerReferences"}, confirmed: true},
}

// TestRemovedFields takes fields away by hand, one after the other. Each comes back soon, by one write, after which
// the object is as before and nothing else is written. Before a child is given an owner again, the API server is asked
// whether the owner is not being deleted, and with it the reference was taken for good: that is one more request.
func TestRemovedFields(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	for component, fields := range removals {
		i := 0
		for some := range slices.Chunk(append(ofEveryComponent, fields...), mostRemovals) {
			server := driftServer(component, removable)
			server.Name = fmt.Sprintf("%s-%d", server.Name, i)
			i++
			ns.Create(t, server)
			t.Run(string(component), func(t *testing.T) {
				t.Parallel()
				ns.AwaitSettled(t, server.Name)
				ns.AwaitCalm(t, server.Name)
				for _, field := range some {
					t.Run(field.name, func(t *testing.T) { removeField(t, ns, component, server.Name, field) })
				}
				ns.CheckOwnership(t, server.Name)
			})
		}
	}
}

// mostRemovals is how many fields are taken from one object: Freehold does not put more back at once, see TestARemoverIsNotFoughtAtFullSpeed.
const mostRemovals = 3

// removable gives an MCPServer some of what can be removed from its children.
func removable(server *v1beta1.MCPServer) {
	server.Spec.Args = []string{"--verbose"}
	server.Spec.Resources.Limits = v1beta1.ResourceList{Memory: "64Mi"}
	server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
		ImagePullSecrets: []v1beta1.LocalObjectReference{{Name: "registry"}},
	}}
}

func removeField(t *testing.T, ns *harness.Namespace, component harness.Component, server string, field removal) {
	t.Helper()
	before := contentOf(ns.MustObject(t, component, server))
	var operations []harness.Operation
	for _, path := range field.paths {
		operations = append(operations, harness.Remove(path))
	}
	mark, began := ns.Mark(t), time.Now()
	harmed := ns.MustPatch(t, harness.Hand, component, server, operations...)
	if cmp.Equal(before, contentOf(harmed)) {
		t.Fatal("the field cannot be removed: the API server fills it in again")
	}
	harness.Eventually(t, "the field is back", func(ctx context.Context) error {
		object, err := ns.Object(ctx, component, server)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(before, contentOf(object)); diff != "" {
			return errors.New("the object differs (-before +now):\n" + diff)
		}
		return nil
	})
	if took := harness.AtPace(began, time.Since(began)); took > soon {
		t.Errorf("it took %v", took)
	}
	want := harness.Once(string(component))
	if field.confirmed {
		want["finalizer"] = 1
	}
	status := ns.CheckWrites(t, server, mark, want)
	if status > 0 && !field.rolls {
		t.Errorf("the status was written %d times", status)
	}
	if field.rolls {
		ns.AwaitSettled(t, server)
	}
}

// contentOf is what somebody wants of an object, without what the API server and the control plane keep account of.
func contentOf(object *unstructured.Unstructured) map[string]any {
	content := object.DeepCopy()
	for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
		unstructured.RemoveNestedField(content.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(content.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	unstructured.RemoveNestedField(content.Object, "status")
	return content.Object
}
