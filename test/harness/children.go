// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// HTTPComponents returns the children of HTTPServer.
func HTTPComponents() []Component {
	return slices.DeleteFunc(ComponentsOf(HTTPServer("any")), func(component Component) bool {
		return component == ServerItself
	})
}

// OtherImage is another image than that of Server, so that an edit shows in the children.
const OtherImage = "example.com/mcp:2"

// MustObjectsOf is ObjectsOf for a test that cannot go on without.
func (ns *Namespace) MustObjectsOf(t *testing.T, name string) map[Component]*unstructured.Unstructured {
	t.Helper()
	objects, err := ns.ObjectsOf(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// AwaitComponents waits until an MCPServer has exactly these children.
func (ns *Namespace) AwaitComponents(t *testing.T, name string, want []Component) {
	t.Helper()
	slices.Sort(want)
	Eventually(t, "the other children of "+name, func(ctx context.Context) error {
		objects, err := ns.ObjectsOf(ctx, name)
		if err != nil {
			return err
		}
		delete(objects, ServerItself)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(objects))); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

// AwaitImage waits until both tiers of an MCPServer have the image.
func (ns *Namespace) AwaitImage(t *testing.T, name, image string) {
	t.Helper()
	Eventually(t, name+" carries "+image, func(ctx context.Context) error {
		backend, err := ns.Core.AppsV1().StatefulSets(ns.Name).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		proxy, err := ns.Core.AppsV1().Deployments(ns.Name).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := backend.Spec.Template.Spec.Containers[0].Image; got != image {
			return fmt.Errorf("the StatefulSet has the image %s", got)
		}
		if args := proxy.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, image) {
			return fmt.Errorf("the Deployment has the arguments %v", args)
		}
		return nil
	})
}

// AwaitReplicas waits until a workload has this number of replicas in its spec, owned by exactly these field managers.
func (ns *Namespace) AwaitReplicas(t *testing.T, component Component, name string, number int64, owners ...string) {
	t.Helper()
	ns.AwaitServer(t, name, fmt.Sprintf("%s is at %d, which is of %v", component, number, owners), func(*v1beta1.MCPServer) error {
		object, err := ns.Object(t.Context(), component, name)
		if err != nil {
			return err
		}
		got, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
		if err != nil || !found || got != number {
			return fmt.Errorf("there are %d replicas: %w", got, errors.Join(err))
		}
		var by []string
		for _, o := range ownership.Owners(object, ".spec.replicas") {
			by = append(by, o.Manager)
		}
		if strings.Join(by, ",") != strings.Join(owners, ",") {
			return fmt.Errorf("the replicas belong to %v", by)
		}
		return nil
	})
}

// RunConfigChecksum returns the checksum in the proxy's pod template that restarts the proxies.
func (ns *Namespace) RunConfigChecksum(t *testing.T, name string) string {
	t.Helper()
	proxy, err := ns.Core.AppsV1().Deployments(ns.Name).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sum := proxy.Spec.Template.Annotations[v1beta1.AnnotationRunConfigChecksum]
	if sum == "" {
		t.Fatal("there is no checksum on the proxy's pod template")
	}
	return sum
}

// AwaitNothingLeft waits until nothing is left of an MCPServer, pods included.
func (ns *Namespace) AwaitNothingLeft(t *testing.T, name string) {
	t.Helper()
	Eventually(t, "nothing is left of "+name, func(ctx context.Context) error {
		objects, err := ns.ObjectsOf(ctx, name)
		if err != nil {
			return err
		}
		if len(objects) > 0 {
			return fmt.Errorf("there are %v", slices.Sorted(maps.Keys(objects)))
		}
		pods, err := ns.Core.CoreV1().Pods(ns.Name).List(ctx, metav1.ListOptions{LabelSelector: "toolhive-name=" + name})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("there are %d pods", len(pods.Items))
		}
		return err
	})
}

// Annotate sets an annotation of an MCPServer, as kubectl annotate does.
func (ns *Namespace) Annotate(t *testing.T, name, key, value string) {
	t.Helper()
	ns.Edit(t, name, func(s *v1beta1.MCPServer) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, value) })
}

// ChildVersions has the resourceVersion of each child of an MCPServer.
type ChildVersions map[Component]string

// ChildVersions returns the resourceVersions of the children of all MCPServers, by MCPServer.
func (ns *Namespace) ChildVersions(t *testing.T) map[string]ChildVersions {
	t.Helper()
	all, err := ns.AllObjects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]ChildVersions{}
	for server, objects := range all {
		states[server] = ChildVersions{}
		for component, object := range objects {
			if component != ServerItself {
				states[server][component] = object.GetResourceVersion()
			}
		}
	}
	return states
}

// Generations returns the UID and the generation of each child of an MCPServer.
func (ns *Namespace) Generations(t *testing.T, server string) map[Component]string {
	t.Helper()
	all := map[Component]string{}
	for component, object := range ns.MustObjectsOf(t, server) {
		if component != ServerItself {
			all[component] = fmt.Sprintf("%s at generation %d", object.GetUID(), object.GetGeneration())
		}
	}
	return all
}

// Components returns the children in the order of their names.
func (s ChildVersions) Components() []Component { return slices.Sorted(maps.Keys(s)) }

// Changed returns the children that were created, deleted or written in between.
func (s ChildVersions) Changed(later ChildVersions) []Component {
	changed := map[Component]bool{}
	for component := range s {
		changed[component] = true
	}
	for component := range later {
		changed[component] = true
	}
	maps.DeleteFunc(changed, func(component Component, _ bool) bool { return s[component] == later[component] })
	return slices.Sorted(maps.Keys(changed))
}

// CheckUnchanged fails the test if a child of the MCPServer has changed, or if the operator still sends requests.
func (ns *Namespace) CheckUnchanged(t *testing.T, name string, before ChildVersions) {
	t.Helper()
	ns.AwaitRest(t)
	ns.Quiet(t, ns.Mark(t), Rest)
	if changed := before.Changed(ns.ChildVersions(t)[name]); len(changed) > 0 {
		t.Errorf("these children changed: %v", changed)
	}
}

// CountAttempts counts the operator's writes to the children of an MCPServer, successful or not.
func CountAttempts(name string, writes []*audit.Event) WriteCount {
	return CountWrites(name, writes).Without("status", "finalizer", "event")
}

// ScaleProxy sets the number of proxies of an MCPServer as kubectl scale does.
func (ns *Namespace) ScaleProxy(t *testing.T, server string, replicas int32) {
	t.Helper()
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: server, Namespace: ns.Name},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
	}
	_, err := ns.Core.AppsV1().Deployments(ns.Name).
		UpdateScale(t.Context(), server, scale, metav1.UpdateOptions{FieldManager: "kubectl"})
	if err != nil {
		t.Fatal(err)
	}
}
