// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/test/harness"
)

// checkUpstream checks that what ToolHive alone has made is what a takeover is built for: who owns the objects, and in
// which fields they are not as Freehold wants them.
func (w *world) checkUpstream(t *testing.T, members []*member) {
	t.Helper()
	dump(t, w, members)
	for _, m := range members {
		name := m.server.Name
		t.Run("owners/"+name, func(t *testing.T) { w.checkOwners(t, m) })
		t.Run("changes/"+name, func(t *testing.T) { w.checkChanges(t, m) })
	}
}

// byOperator and byRunner are the entries of ToolHive's managers.
const (
	byOperator       = "thv-operator Update"
	byOperatorStatus = "thv-operator Update status"
	byRunner         = "toolhive-container-manager Apply"
)

// toolHiveOwners are ToolHive's entries in the managedFields of each component.
var toolHiveOwners = map[harness.Component][]string{
	harness.ServerItself:    {byOperator, byOperatorStatus},
	harness.ProxyAccount:    {byOperator},
	harness.BackendAccount:  {byOperator},
	harness.ProxyRole:       {byOperator},
	harness.ProxyBinding:    {byOperator},
	harness.RunConfig:       {byOperator},
	harness.InlineAuthz:     {byOperator},
	harness.HeadlessService: {byRunner},
	harness.BackendService:  {byRunner},
	harness.Backend:         {byRunner}, // and the operator, where it adopts
	harness.ProxyService:    {byOperator},
	harness.Proxy:           {byOperator},
}

func (w *world) checkOwners(t *testing.T, m *member) {
	t.Helper()
	for _, component := range harness.ComponentsOf(m.server) {
		object := w.MustObject(t, component, m.server.Name)
		var owners []string
		for _, entry := range object.GetManagedFields() {
			if managers.ClassOf(entry.Manager, entry.Subresource) == managers.ClassToolHive {
				owners = append(owners, entryName(&entry))
			}
		}
		want := toolHiveOwners[component]
		if component == harness.Backend && adopts(t) {
			want = append([]string{byOperator}, want...)
		}
		slices.Sort(owners)
		if !slices.Equal(owners, want) {
			t.Errorf("of ToolHive, %s is owned by %q, want %q", component, owners, want)
		}
	}
	if got, want := gateOf(w.MustObject(t, harness.Backend, m.server.Name)), strconv.Itoa(m.gate()); got != want {
		t.Errorf("the gate is %s, want %s", got, want)
	}
}

// sinceReadTimeout is the first release of ToolHive that has all fields of v0.62.0 which an MCPServer without references can have.
const sinceReadTimeout = "0.58.0"

// sinceAdoption is the first release of ToolHive whose operator makes the MCPServer the StatefulSet's controller, which its
// proxyrunner writes without one.
const sinceAdoption = "0.45.0"

// adopts reports whether the ToolHive of this run does that.
func adopts(t *testing.T) bool {
	t.Helper()
	return harness.ToolHiveAtLeast(t, sinceAdoption)
}

func entryName(entry *metav1.ManagedFieldsEntry) string {
	name := fmt.Sprintf("%s %s", entry.Manager, entry.Operation)
	if entry.Subresource != "" {
		name += " " + entry.Subresource
	}
	return name
}

// gateOf is the generation in the pod template of a StatefulSet.
func gateOf(statefulSet *unstructured.Unstructured) string {
	gate, _, _ := unstructured.NestedString(statefulSet.Object,
		"spec", "template", "metadata", "annotations", v1beta1.AnnotationGeneration)
	return gate
}

// The fields in which ToolHive's objects are not as Freehold wants them.
const (
	allLabels = ".metadata.labels"
	template  = ".spec.template"
	container = template + ".spec.containers.toolhive"
	gatePath  = template + ".metadata.annotations." + v1beta1.AnnotationGeneration
)

// changedFields are the fields that a takeover changes, whatever the MCPServer.
var changedFields = map[harness.Component][]string{
	// ToolHive gives these no labels.
	harness.ProxyAccount:   {allLabels},
	harness.BackendAccount: {allLabels},
	harness.ProxyBinding:   {allLabels},
	harness.ProxyRole:      {allLabels, ".rules"},
	// They are the StatefulSet's, and become the MCPServer's. ToolHive's select by the label app alone.
	harness.HeadlessService: {
		".metadata.ownerReferences.<name>.apiVersion", ".metadata.ownerReferences.<name>.kind",
		".metadata.ownerReferences.<name>.uid", ".spec.selector.toolhive-name",
	},
	harness.BackendService: {
		".metadata.ownerReferences.<name>.apiVersion", ".metadata.ownerReferences.<name>.kind",
		".metadata.ownerReferences.<name>.uid", ".spec.selector.toolhive-name",
	},
	harness.Proxy: {
		gatePath, template + ".metadata.annotations.toolhive.stacklok.dev/runconfig-checksum",
		template + ".spec.volumes.runconfig.configMap.name",
		container + ".args", container + ".env.OPERATOR_OPENSHIFT",
		container + ".env.THV_MCPSERVER_GENERATION.value", container + ".env.THV_MCPSERVER_GENERATION.valueFrom",
	},
}

// checkChanges checks what a takeover changes of an MCPServer, and who else than ToolHive stands in its way.
func (w *world) checkChanges(t *testing.T, m *member) {
	t.Helper()
	result, err := w.intents(t, m.server.Name)
	if refused := err != nil; refused != m.uncovered {
		t.Fatalf("rendering ended with %v", err)
	}
	if m.uncovered {
		t.Logf("nothing is changed: %v", err)
		return
	}
	for _, intent := range result.Intents {
		component := componentOf(t, m.server, intent)
		if harness.FormOf(component).Digest {
			continue // It has a name of its own, and ToolHive's stays as it is until nothing uses it.
		}
		found, refusal := w.attempt(t, component, m.server.Name, intent)
		paths := []string{}
		for _, c := range found {
			t.Logf("%s by %s: %s", component, intent.Writer, c)
			paths = append(paths, c.path)
		}
		want := m.changed(component, intent.Writer, adopts(t))
		if !slices.Equal(paths, want) {
			t.Errorf("%s changes of the %s: %q, want %q", intent.Writer, component, paths, want)
		}
		contested := m.contested[component]
		if managers.CountsReplicas(intent.Writer) {
			contested = ""
		}
		if got := conflictOf(refusal); got != contested {
			t.Errorf("%s is refused %q of the %s, want %q: %v", intent.Writer, got, component, contested, refusal)
		}
	}
}

// changed are the fields that the writer changes of a component of this MCPServer, whose StatefulSet ToolHive's operator may
// have adopted.
func (m *member) changed(component harness.Component, writer string, adopted bool) []string {
	paths := []string{}
	if managers.CountsReplicas(writer) {
		return paths
	}
	for _, path := range changedFields[component] {
		paths = append(paths, strings.ReplaceAll(path, "<name>", m.server.Name))
	}
	if !slices.Contains(paths, allLabels) {
		paths = append(paths, allLabels+"."+v1beta1.LabelAppManagedBy)
	}
	if contested := m.contested[component]; contested != "" {
		paths = append(paths, contested)
	}
	if authz := m.server.Spec.AuthzConfig; component == harness.Proxy && authz != nil && authz.Type == v1beta1.AuthzConfigTypeInline {
		paths = append(paths, template+".spec.volumes.authz-config.configMap.name")
	}
	if component == harness.Proxy && m.server.Spec.Transport == v1beta1.TransportStdio {
		paths = append(paths, template+".metadata.annotations."+v1beta1.AnnotationAttachedTo)
	}
	if component == harness.Proxy && m.server.Spec.Transport != v1beta1.TransportStdio {
		paths = append(paths, container+".lifecycle")
	}
	if component == harness.Backend && !adopted {
		paths = append(paths, ".metadata.ownerReferences")
	}
	// A gate that keeps runners away stays as it is, unless the pods are restarted anyhow.
	if component == harness.Backend && (m.gate() == 1 || m.contested[component] != "") {
		paths = append(paths, gatePath)
	}
	slices.Sort(paths)
	return paths
}

// componentOf returns the component of the MCPServer that an intent is for.
func componentOf(t *testing.T, server *v1beta1.MCPServer, intent render.Intent) harness.Component {
	t.Helper()
	for _, component := range harness.ComponentsOf(server) {
		form := harness.FormOf(component)
		if form.Kind == intent.Kind && (form.Name(server.Name) == intent.Name || form.Digest && form.Manager == intent.Writer) {
			return component
		}
	}
	t.Fatalf("%s %s is no component of an MCPServer", intent.Kind, intent.Name)
	return ""
}

// conflictOf returns the one field that an apply was refused for, as the paths of changes are written; "" for none.
func conflictOf(err error) string {
	if err == nil {
		return ""
	}
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) != 1 {
		return err.Error()
	}
	return neutralPath(status.Status().Details.Causes[0].Field)
}

// neutralPath writes paths of managed fields as those of changes are written.
func neutralPath(text string) string {
	return strings.NewReplacer(`[name="`, ".", `"]`, "").Replace(text)
}
