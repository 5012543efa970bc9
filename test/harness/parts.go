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
)

// Part is an object of an MCPServer, by what it is there for.
type Part string

// The parts of an MCPServer: it itself, and its children in the order in which they are made.
const (
	ServerItself    Part = "server"
	ProxyAccount    Part = "account/proxy"
	BackendAccount  Part = "account/backend"
	ProxyRole       Part = "role"
	ProxyBinding    Part = "binding"
	RunConfig       Part = "runconfig"
	InlineAuthz     Part = "authz"
	HeadlessService Part = "service/headless"
	BackendService  Part = "service/backend"
	Backend         Part = "backend"
	ProxyService    Part = "service/proxy"
	Proxy           Part = "proxy"
)

// Form is how the objects of a part are made.
type Form struct {
	Part     Part
	Kind     schema.GroupKind
	Resource schema.GroupVersionResource
	// Prefix and Suffix stand around the MCPServer's name in that of the object.
	Prefix, Suffix string
	// Digest tells that the operator adds a digest of the content to the name. ToolHive does not.
	Digest bool
	// Manager owns the object but for the number of replicas, of which Replicas, if not empty, is the manager.
	Manager, Replicas string
}

// Name is the object's name for an MCPServer, without a digest.
func (f Form) Name(server string) string { return f.Prefix + server + f.Suffix }

// Is tells whether an object of the form's kind is the part of an MCPServer, or was, by its name.
func (f Form) Is(server, name string) bool { return f.Base(name) == f.Name(server) }

var digest = regexp.MustCompile(`-[0-9a-f]{16}$`)

// Base is an object's name without a digest of its content, if the form has one.
func (f Form) Base(name string) string {
	if f.Digest {
		return digest.ReplaceAllString(name, "")
	}
	return name
}

// serverOf returns the MCPServer whose part an object of this name is.
func (f Form) serverOf(name string) (server string, ok bool) {
	if f.Part == BackendService && (strings.HasSuffix(name, "-proxy") || strings.HasSuffix(name, "-headless")) {
		return "", false // No MCPServer of a test ends like this.
	}
	if server, ok = strings.CutPrefix(f.Base(name), f.Prefix); !ok {
		return "", false
	}
	return strings.CutSuffix(server, f.Suffix)
}

// forms are the contract with ToolHive's users, once more: what is tested does not tell what is expected.
var forms = []Form{
	{
		Part: ServerItself, Kind: managers.MCPServer,
		Resource: v1beta1.SchemeGroupVersion.WithResource("mcpservers"), Manager: managers.Finalizer,
	},
	{
		Part: ProxyAccount, Kind: managers.ServiceAccount, Resource: core("serviceaccounts"),
		Suffix: "-proxy-runner", Manager: managers.Access,
	},
	{
		Part: BackendAccount, Kind: managers.ServiceAccount, Resource: core("serviceaccounts"),
		Suffix: "-sa", Manager: managers.Access,
	},
	{
		Part: ProxyRole, Kind: managers.Role, Resource: rbac("roles"),
		Suffix: "-proxy-runner", Manager: managers.Access,
	},
	{
		Part: ProxyBinding, Kind: managers.RoleBinding, Resource: rbac("rolebindings"),
		Suffix: "-proxy-runner", Manager: managers.Access,
	},
	{
		Part: RunConfig, Kind: managers.ConfigMap, Resource: core("configmaps"),
		Suffix: "-runconfig", Digest: true, Manager: managers.RunConfig,
	},
	{
		Part: InlineAuthz, Kind: managers.ConfigMap, Resource: core("configmaps"),
		Suffix: "-authz-inline", Digest: true, Manager: managers.Authz,
	},
	{
		Part: HeadlessService, Kind: managers.ServiceKind, Resource: core("services"),
		Prefix: "mcp-", Suffix: "-headless", Manager: managers.Service,
	},
	{
		Part: ProxyService, Kind: managers.ServiceKind, Resource: core("services"),
		Prefix: "mcp-", Suffix: "-proxy", Manager: managers.Service,
	},
	{
		Part: BackendService, Kind: managers.ServiceKind, Resource: core("services"),
		Prefix: "mcp-", Manager: managers.Service,
	},
	{
		Part: Backend, Kind: managers.StatefulSet, Resource: apps("statefulsets"),
		Manager: managers.Backend, Replicas: managers.BackendReplicas,
	},
	{
		Part: Proxy, Kind: managers.Deployment, Resource: apps("deployments"),
		Manager: managers.Proxy, Replicas: managers.ProxyReplicas,
	},
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func apps(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
}

func rbac(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
}

// FormOf returns how a part is made.
func FormOf(part Part) Form {
	for _, f := range forms {
		if f.Part == part {
			return f
		}
	}
	panic("there is no part " + string(part))
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

// partOf returns the part of an MCPServer that an object of a resource and name is.
func partOf(server string, resource schema.GroupResource, name string) (Form, bool) {
	for _, f := range forms {
		if f.Resource.GroupResource() == resource && f.Is(server, name) {
			return f, true
		}
	}
	return Form{}, false
}

// PartsOf returns the parts that an MCPServer has, itself included.
func PartsOf(server *v1beta1.MCPServer) []Part {
	parts := []Part{ServerItself, ProxyAccount, ProxyRole, ProxyBinding, RunConfig, Backend, ProxyService, Proxy}
	if server.Spec.ServiceAccount == nil {
		parts = append(parts, BackendAccount)
	}
	if authz := server.Spec.AuthzConfig; authz != nil && authz.Inline != nil {
		parts = append(parts, InlineAuthz)
	}
	if server.Spec.Transport != v1beta1.TransportStdio && server.Spec.Transport != "" {
		parts = append(parts, HeadlessService, BackendService)
	}
	return parts
}

// Managers returns the field managers of a part that are Freehold's, with the subresources they write to, as
// manager or manager/subresource.
func Managers(server *v1beta1.MCPServer, part Part) []string {
	form := FormOf(part)
	names := []string{form.Manager}
	switch {
	case part == ServerItself:
		names = append(names, managers.Status+"/status")
		if server.Annotations[v1beta1.AnnotationTake] != "" {
			names = append(names, managers.Requests)
		}
	case part == Proxy && server.Spec.Replicas != nil, part == Backend && server.Spec.BackendReplicas != nil:
		names = append(names, form.Replicas)
	}
	return names
}
