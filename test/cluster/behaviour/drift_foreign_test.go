// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// foreignComponents are all children that somebody else's object can stand in the way of, and what else an object of that
// kind needs; but for ConfigMaps, whose names tell their content.
var foreignComponents = map[harness.Component]map[string]any{
	harness.Proxy: {"spec": map[string]any{
		"replicas": int64(0), "selector": theirLabels("matchLabels"), "template": theirPod(),
	}},
	harness.Backend: {"spec": map[string]any{
		"replicas": int64(0), "serviceName": "theirs", "selector": theirLabels("matchLabels"), "template": theirPod(),
	}},
	harness.BackendService:  {"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}},
	harness.HeadlessService: {"spec": map[string]any{"clusterIP": "None"}},
	harness.ProxyService:    {"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}},
	harness.BackendAccount:  {},
	harness.ProxyAccount:    {},
	harness.ProxyRole:       {"rules": []any{}},
	harness.ProxyBinding: {"roleRef": map[string]any{
		"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "theirs",
	}},
}

func theirLabels(field string) map[string]any {
	return map[string]any{field: map[string]any{"app": "theirs"}}
}

func theirPod() map[string]any {
	return map[string]any{
		"metadata": theirLabels("labels"),
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "theirs", "image": "example.com/theirs:1"}}},
	}
}

// obstacle is an object of somebody else in the place of a child, and the MCPServer that it is in the way of.
type obstacle struct {
	component harness.Component
	server    string
}

// make makes the object.
func (o obstacle) make(t *testing.T, ns *harness.Namespace) string {
	t.Helper()
	form := harness.FormOf(o.component)
	object := &unstructured.Unstructured{Object: maps.Clone(foreignComponents[o.component])}
	object.SetGroupVersionKind(form.Resource.GroupVersion().WithKind(form.Kind.Kind))
	object.SetName(form.Name(o.server))
	made, err := ns.Objects(o.component).Create(t.Context(), object, metav1.CreateOptions{FieldManager: harness.Hand})
	if err != nil {
		t.Fatal(err)
	}
	return made.GetResourceVersion()
}

// TestForeignObjects has, for each child of an MCPServer, an object of somebody else in its place, and takes it away
// later. It is never touched, and costs nothing as long as it is there.
func TestForeignObjects(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := env.Namespace(t)
	var obstacles []obstacle
	for component := range foreignComponents {
		obstacles = append(obstacles, obstacle{component, fmt.Sprintf("s%d", len(obstacles))})
	}
	versions := map[string]string{}
	for _, o := range obstacles {
		versions[o.server] = o.make(t, ns)
	}
	ns.AwaitRest(t)
	operator := ns.Operate(t)
	for _, o := range obstacles {
		ns.Create(t, harness.HTTPServer(o.server, harness.InlineAuthorization))
	}
	for _, o := range obstacles {
		t.Run(string(o.component)+"/is shown", func(t *testing.T) { awaitForeign(t, ns, o) })
	}
	ns.AwaitRest(t)
	standing := ns.Mark(t)
	// Nothing shows when they go, so they are read again after waits that grow.
	ns.Quiet(t, standing, harness.Calm, audit.Writes())

	// Neither a new operator nor an edit makes a difference.
	operator = ns.ReplaceOperator(t, operator)
	ns.AwaitRest(t)
	// No informer of the new one shows them, so each is found by one refused creation.
	if tried := ns.Writes(t, standing); len(tried) != len(obstacles) || slices.ContainsFunc(tried, (*audit.Event).Succeeded) {
		t.Errorf("a restart costs these writes: %v", tried)
	}
	for _, o := range obstacles {
		ns.Edit(t, o.server, func(server *v1beta1.MCPServer) { server.Spec.Image = harness.OtherImage })
	}
	for _, o := range obstacles {
		t.Run(string(o.component)+"/others go on", func(t *testing.T) {
			awaitForeign(t, ns, o)
			checkOthers(t, ns, o)
		})
	}
	ns.AwaitRest(t)
	for _, o := range obstacles {
		object := ns.MustObject(t, o.component, o.server)
		if got := object.GetResourceVersion(); o.component != harness.Proxy && o.component != harness.Backend && got != versions[o.server] {
			t.Errorf("somebody else's %s was touched: %v", o.component, object)
		}
		for _, entry := range object.GetManagedFields() {
			if entry.Manager != harness.Hand && entry.Manager != "kube-controller-manager" {
				t.Errorf("somebody else's %s was touched by %s", o.component, entry.Manager)
			}
		}
	}

	// One MCPServer gives up, the others get their places.
	ns.Delete(t, obstacles[0].server, metav1.DeletePropagationBackground)
	ns.AwaitGone(t, obstacles[0].server)
	ns.MustObject(t, obstacles[0].component, obstacles[0].server)
	for _, o := range obstacles[1:] {
		err := ns.Objects(o.component).Delete(t.Context(), harness.FormOf(o.component).Name(o.server), metav1.DeleteOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range obstacles[1:] {
		t.Run(string(o.component)+"/converges", func(t *testing.T) {
			ns.AwaitStatus(t, o.server, harness.Fine...)
			ns.AwaitSettled(t, o.server)
			ns.CheckOwnership(t, o.server)
		})
	}
	ns.AwaitRest(t)
	ns.ReplaceOperator(t, operator)
	ns.Quiet(t, ns.Mark(t), harness.Rest)
}

// withoutChild is what Ready says of an MCPServer without a child that is somebody else's: that not all is as it asks for,
// although it may work.
var withoutChild = harness.Expectation{Condition: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "ObjectNotOurs"}

// awaitForeign waits until the object in the way is told of, by one condition and one event.
func awaitForeign(t *testing.T, ns *harness.Namespace, o obstacle) {
	t.Helper()
	form := harness.FormOf(o.component)
	name := form.Name(o.server)
	expect := harness.Expectation{Condition: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionFalse, Reason: "ObjectNotOurs", Message: []string{"/" + name, "not a child of this MCPServer"}}
	if o.component == harness.Proxy || slices.Contains(neededBy(harness.Proxy), o.component) {
		ns.AwaitStatus(t, o.server, expect)
	} else {
		ns.AwaitStatus(t, o.server, expect, withoutChild)
		ns.AwaitWorkloads(t, o.server)
	}
	ns.AwaitOneWarning(t, o.server, expect)
}

// neededBy returns the components without which another one is not made.
func neededBy(component harness.Component) []harness.Component {
	switch component {
	case harness.Backend:
		return []harness.Component{harness.BackendAccount}
	case harness.Proxy:
		return []harness.Component{
			harness.Backend, harness.BackendAccount, harness.ProxyAccount, harness.ProxyRole, harness.ProxyBinding,
		}
	default:
		return nil
	}
}

// checkOthers fails the test unless all children but that with the obstacle are there.
func checkOthers(t *testing.T, ns *harness.Namespace, o obstacle) {
	t.Helper()
	objects, err := ns.ObjectsOf(t.Context(), o.server)
	if err != nil {
		t.Fatal(err)
	}
	want := append(harness.HTTPComponents(), harness.InlineAuthz)
	want = slices.DeleteFunc(want, func(component harness.Component) bool {
		// The proxy waits for its backend, and a workload for what it depends on.
		return component == o.component || slices.Contains(neededBy(component), o.component)
	})
	var got []harness.Component
	for component, object := range objects {
		if owner := metav1.GetControllerOf(object); owner != nil && owner.Name == o.server {
			got = append(got, component)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("other children (-want +got):\n%s", diff)
	}
}

// TestACollidingNameIsOfWhoComesFirst has MCPServers of which one's child has the name of the other's. Who comes first has it.
func TestACollidingNameIsOfWhoComesFirst(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	// The Service mcp-web-proxy is for the clients of web, or for the proxy of web-proxy.
	ns.Create(t, harness.HTTPServer("web"))
	ns.AwaitStatus(t, "web", harness.Fine...)
	ns.Create(t, harness.HTTPServer("web-proxy"))
	stands := harness.Expectation{Condition: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionFalse, Reason: "ObjectNotOurs", Message: []string{"service/mcp-web-proxy"}}
	ns.AwaitStatus(t, "web-proxy", stands)
	ns.AwaitOneWarning(t, "web-proxy", stands)
	// With stdio the second has no such Service, and does not take the first one's for one that it had.
	ns.Create(t, harness.Server("web-headless", v1beta1.TransportStdio))
	ns.AwaitStatus(t, "web-headless", harness.Fine...)
	ns.AwaitStatus(t, "web-proxy", stands, withoutChild)
	ns.AwaitSettled(t, "web")
	ns.AwaitSettled(t, "web-headless")
	ns.AwaitWorkloads(t, "web-proxy")
	ns.AwaitRest(t)
	ns.Quiet(t, ns.Mark(t), harness.Calm)
	ns.AwaitStatus(t, "web", harness.Fine...)
	ns.CheckOwnership(t, "web")

	ns.Delete(t, "web", metav1.DeletePropagationForeground)
	ns.AwaitGone(t, "web")
	ns.AwaitStatus(t, "web-proxy", harness.Fine...)
}
