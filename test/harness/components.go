// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// Component names an object of an MCPServer by its purpose.
type Component string

// The components of an MCPServer: the MCPServer itself, and its children in the order in which the operator creates them.
const (
	ServerItself    Component = "server"
	ProxyAccount    Component = "account/proxy"
	BackendAccount  Component = "account/backend"
	ProxyRole       Component = "role"
	ProxyBinding    Component = "binding"
	RunConfig       Component = "runconfig"
	InlineAuthz     Component = "authz"
	HeadlessService Component = "service/headless"
	BackendService  Component = "service/backend"
	Backend         Component = "backend"
	ProxyService    Component = "service/proxy"
	Proxy           Component = "proxy"
)

// Form describes the objects of a component.
type Form struct {
	Component Component
	Kind      schema.GroupKind
	Resource  schema.GroupVersionResource
	// Prefix and Suffix stand around the MCPServer's name in that of the object.
	Prefix, Suffix string
	// Digest tells that the operator adds a digest of the content to the name. ToolHive does not.
	Digest bool
	// Manager owns the object but for the number of replicas, of which Replicas, if not empty, is the manager.
	Manager, Replicas string
}

// Name is the object's name for an MCPServer, without a digest.
func (f Form) Name(server string) string { return f.Prefix + server + f.Suffix }

// Is reports whether an object of the form's kind is, or was, this component of an MCPServer, judged by its name.
func (f Form) Is(server, name string) bool { return f.Base(name) == f.Name(server) }

var digest = regexp.MustCompile(`-[0-9a-f]{16}$`)

// Base is an object's name without a digest of its content, if the form has one.
func (f Form) Base(name string) string {
	if f.Digest {
		return digest.ReplaceAllString(name, "")
	}
	return name
}

// serverOf returns the MCPServer whose component an object of this name is.
func (f Form) serverOf(name string) (server string, ok bool) {
	if f.Component == BackendService && (strings.HasSuffix(name, "-proxy") || strings.HasSuffix(name, "-headless")) {
		return "", false // No MCPServer of a test ends like this.
	}
	if server, ok = strings.CutPrefix(f.Base(name), f.Prefix); !ok {
		return "", false
	}
	return strings.CutSuffix(server, f.Suffix)
}

// Conflict is what it costs at most when another field manager sets a field of the component for itself: one event. If the
// field is the label by which the operator finds the object, there is none in its cache any more: a refused creation finds it, and a
// refused apply the conflict.
func (f Form) Conflict(path string) WriteCount {
	count := Once("event")
	label := ".metadata.labels.toolhive"
	if f.Component == RunConfig {
		label += ".stacklok.io/component"
	}
	if path == label {
		count[string(f.Component)+" (409)"] = 2
	}
	return count
}

// forms are those of the MCPServer and its children, in the order in which they are made.
var forms = allForms()

func allForms() []Form {
	all := []Form{{
		Component: ServerItself, Kind: managers.MCPServer,
		Resource: v1beta1.SchemeGroupVersion.WithResource("mcpservers"), Manager: managers.Finalizer,
	}}
	purposes := map[*inventory.Child]Component{
		inventory.RunnerAccount: ProxyAccount, inventory.RunnerRole: ProxyRole, inventory.RunnerBinding: ProxyBinding,
		inventory.BackendAccount: BackendAccount, inventory.RunConfig: RunConfig, inventory.InlineAuthz: InlineAuthz,
		inventory.HeadlessService: HeadlessService, inventory.BackendService: BackendService, inventory.ProxyService: ProxyService,
		inventory.Backend: Backend, inventory.Proxy: Proxy,
	}
	for _, child := range inventory.Children() {
		component, known := purposes[child]
		if !known {
			component = Component(strings.ToLower(child.Kind.Kind))
		}
		all = append(all, Form{
			Component: component, Kind: child.Kind, Resource: child.GroupVersionResource(), Prefix: child.Prefix, Suffix: child.Suffix,
			Digest: child.ByContent, Manager: child.Writer, Replicas: child.Replicas,
		})
	}
	return all
}

// FormOf returns the form of a component.
func FormOf(component Component) Form {
	for _, f := range forms {
		if f.Component == component {
			return f
		}
	}
	panic("there is no component " + string(component))
}

// kindOf returns the kind of what a request is about; ok is false unless Freehold owns it.
func kindOf(e *audit.Event) (kind schema.GroupKind, ok bool) {
	for _, f := range forms {
		if f.Resource.Group == e.Group && f.Resource.Resource == e.Resource {
			return f.Kind, true
		}
	}
	return schema.GroupKind{}, false
}

// componentOf returns the form of the component of an MCPServer that has this resource and name.
func componentOf(server string, resource schema.GroupResource, name string) (Form, bool) {
	for _, f := range forms {
		if f.Resource.GroupResource() == resource && f.Is(server, name) {
			return f, true
		}
	}
	return Form{}, false
}

// ComponentsOf returns the components that an MCPServer has, itself included.
func ComponentsOf(server *v1beta1.MCPServer) []Component {
	components := []Component{ServerItself, ProxyAccount, ProxyRole, ProxyBinding, RunConfig, Backend, ProxyService, Proxy}
	if server.Spec.ServiceAccount == nil {
		components = append(components, BackendAccount)
	}
	if authz := server.Spec.AuthzConfig; authz != nil && authz.Inline != nil {
		components = append(components, InlineAuthz)
	}
	if server.Spec.Transport != v1beta1.TransportStdio && server.Spec.Transport != "" {
		components = append(components, HeadlessService, BackendService)
	}
	return components
}

// Managers returns the field managers of a component that are Freehold's, with the subresources they write to, as
// manager or manager/subresource.
func Managers(server *v1beta1.MCPServer, component Component) []string {
	form := FormOf(component)
	names := []string{form.Manager}
	switch {
	case component == ServerItself:
		names = append(names, managers.Status+"/status")
		if server.Annotations[v1beta1.AnnotationTake] != "" {
			names = append(names, managers.Requests)
		}
		if server.Annotations[v1beta1.AnnotationTakeoverProgress] != "" {
			names = append(names, managers.Takeover)
		}
	case component == Proxy && server.Spec.Replicas != nil, component == Backend && server.Spec.BackendReplicas != nil:
		names = append(names, form.Replicas)
	}
	return names
}
