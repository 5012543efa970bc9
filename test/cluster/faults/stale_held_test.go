// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/faultproxy"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestAWriteFromAnOlderViewIsRefused holds a write when the operator has looked at the object and found that it may
// write. Before it is let go, another operator has carried out a later edit. The write is refused and changes nothing.
func TestAWriteFromAnOlderViewIsRefused(t *testing.T) {
	t.Parallel()
	// A RunConfig that comes late has a name that nothing asks for any more.
	for _, component := range []harness.Component{harness.Backend, harness.Proxy} {
		for _, moment := range []string{"change", "creation"} {
			t.Run(string(component)+" "+moment, func(t *testing.T) {
				t.Parallel()
				holdBack(t, component, moment == "creation")
			})
		}
	}
}

const heldBackImage = "example.com/mcp:held-back"

func holdBack(t *testing.T, component harness.Component, creation bool) {
	t.Helper()
	ns := env.Namespace(t)
	versions, known := record(t, ns), specs{}
	proxy := ns.Proxy(t, faultproxy.Options{})
	ns.OperateThrough(t, proxy)
	const name = "web"
	resource := harness.FormOf(component).Resource
	server := harness.HTTPServer(name, harness.Environment(editedVariable, "0"), harness.Replicas(1, 1))
	edit := func(image string) int64 {
		edited := ns.Edit(t, name, func(s *v1beta1.MCPServer) { s.Spec.Image = image })
		known.add(edited)
		return edited.Generation
	}
	var hold *faultproxy.Hold
	if creation {
		hold = proxy.Hold(faultproxy.Patches(resource.Group, resource.Resource))
		server.Spec.Image = heldBackImage
		known.add(ns.Create(t, server))
	} else {
		known.add(ns.Create(t, server))
		ns.AwaitSettled(t, name)
		hold = proxy.Hold(faultproxy.Patches(resource.Group, resource.Resource))
		edit(heldBackImage)
	}
	harness.Await(t, "the operator writes", hold.Caught())
	newer := edit(harness.OtherImage)
	ns.Operate(t)
	harness.Eventually(t, "the other operator carries the later edit out", func(ctx context.Context) error {
		object, err := ns.Object(ctx, component, name)
		if err != nil {
			return err
		}
		if source, _ := apply.ParseSource(object.GetAnnotations()[v1beta1.AnnotationSource]); source.Generation != newer {
			return fmt.Errorf("it is of generation %d", source.Generation)
		}
		return nil
	})
	hold.Release()
	harness.Eventually(t, "the write that was held is answered", func(context.Context) error {
		if len(hold.Answers()) < hold.Count() {
			return errors.New("it is not")
		}
		return nil
	})
	if answers := hold.Answers(); slices.ContainsFunc(answers, func(code int) bool { return code != http.StatusConflict }) {
		t.Errorf("what was held was answered with %v", answers)
	}
	ns.AwaitSettled(t, name)
	ns.AwaitCalm(t, name) // Both operators write the status, the slower one in vain.
	ns.Quiet(t, ns.Mark(t), harness.Calm)
	versions.check(t, known)
	all, _ := versions.look()
	for _, v := range all {
		if v.component == component && deviations(v, v1beta1.MCPServerSpec{Image: heldBackImage, Env: server.Spec.Env}) == "" {
			t.Errorf("what was held came through: resourceVersion %s is %v", v.object.GetResourceVersion(), v.object)
		}
	}
}

// TestLeftoversOfAPredecessorAreWritten makes an MCPServer anew whose predecessor left its children behind. They tell
// of a generation that the new one is far from, but of another MCPServer, and are written.
func TestLeftoversOfAPredecessorAreWritten(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	const name = "phoenix"
	before := harness.HTTPServer(name, harness.Environment(editedVariable, "0"), harness.Replicas(2, 2))
	ns.Create(t, before)
	ns.AwaitSettled(t, name)
	var last *v1beta1.MCPServer
	for i := range 5 {
		last = ns.Edit(t, name, func(s *v1beta1.MCPServer) {
			s.Spec.Image = fmt.Sprintf("example.com/mcp:old-%d", i)
			harness.Replicas(1+int32(i%2), 1+int32(i%2))(s)
		})
	}
	ns.AwaitSettled(t, name)
	components := []harness.Component{harness.RunConfig, harness.Backend, harness.Proxy}
	old := map[harness.Component]metav1.Object{}
	for _, component := range components {
		old[component] = ns.MustObject(t, component, name)
		for key, source := range sourcesOf(component, old[component]) {
			if source.UID != last.UID || source.Generation < 2 {
				t.Fatalf("%s tells by %s that it is from %v, not from a late generation of %s", component, key, source, last.UID)
			}
		}
	}
	ns.Delete(t, name, metav1.DeletePropagationOrphan)
	ns.AwaitGone(t, name)

	again := ns.Create(t, harness.HTTPServer(name, harness.Environment(editedVariable, "new"), harness.Replicas(2, 2)))
	ns.AwaitSettled(t, name)
	for _, component := range components {
		object := ns.MustObject(t, component, name)
		// Another RunConfig is another object.
		if component != harness.RunConfig && object.GetUID() != old[component].GetUID() {
			t.Errorf("%s was not left behind", component)
		}
		for key, source := range sourcesOf(component, object) {
			if want := (apply.Source{UID: again.UID, Generation: 1}); source.String() != want.String() {
				t.Errorf("%s tells by %s that it is from %v, not %v", component, key, source, want)
			}
		}
	}
	ns.CheckOwnership(t, name)
}

// sourcesOf returns what an object tells of where it is from, by annotation.
func sourcesOf(component harness.Component, object metav1.Object) map[string]apply.Source {
	keys := []string{v1beta1.AnnotationSource}
	if harness.FormOf(component).Replicas != "" {
		keys = append(keys, v1beta1.AnnotationReplicasSource)
	}
	found := map[string]apply.Source{}
	for _, key := range keys {
		found[key], _ = apply.ParseSource(object.GetAnnotations()[key])
	}
	return found
}
