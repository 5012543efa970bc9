// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// Child is one of the objects that Freehold makes for an MCPServer. The names are ToolHive's; its users and other operators
// know them.
type Child struct {
	// Kind of the object, and Version and Resource by which a client reaches it.
	Kind     schema.GroupKind
	Version  string
	Resource string
	// Prefix and Suffix stand around the MCPServer's name in the object's.
	Prefix, Suffix string
	// ByContent is set when the name ends with a digest of the content, so that pods of any revision read the content that
	// their template was made with. ToolHive, and earlier versions of Freehold, gave such an object the name without the
	// digest.
	ByContent bool
	// Selector is a label that every such object has, ToolHive's as well where named says so. Informers select by it.
	Selector Selector
	// Writer is the field manager whose claim makes the object Freehold's.
	Writer string
	// Replicas is the field manager of spec.replicas; empty for a child without pods.
	Replicas string
	// DependsOn are the children that must be written before this one: while one of them is refused, this one is held
	// back. They come before it.
	DependsOn []*Child
	// named reports that ToolHive labels the object with its MCPServer's name. Where it does not, the suffix distinguishes
	// the object from those of other MCPServers.
	named bool
}

// Selector is a label and its value.
type Selector struct{ Key, Value string }

// String returns the form that the API server takes.
func (s Selector) String() string { return s.Key + "=" + s.Value }

// Selects reports whether an object has the label.
func (s Selector) Selects(object metav1.Object) bool { return object.GetLabels()[s.Key] == s.Value }

var (
	ofToolHive  = Selector{v1beta1.LabelToolHive, "true"}
	isRunConfig = Selector{v1beta1.LabelComponent, "run-config"}
)

// The children of an MCPServer. See docs/architecture.md for how to add one.
var (
	RunnerAccount  = made(Child{Kind: managers.ServiceAccount, Suffix: "-proxy-runner", Writer: managers.Access})
	RunnerRole     = made(Child{Kind: managers.Role, Suffix: "-proxy-runner", Writer: managers.Access})
	RunnerBinding  = made(Child{Kind: managers.RoleBinding, Suffix: "-proxy-runner", Writer: managers.Access})
	BackendAccount = made(Child{Kind: managers.ServiceAccount, Suffix: "-sa", Writer: managers.Access})
	RunConfig      = made(Child{
		Kind: managers.ConfigMap, Suffix: "-runconfig", ByContent: true, Selector: isRunConfig, Writer: managers.RunConfig, named: true,
	})
	InlineAuthz     = made(Child{Kind: managers.ConfigMap, Suffix: "-authz-inline", ByContent: true, Writer: managers.Authz, named: true})
	HeadlessService = made(Child{Kind: managers.ServiceKind, Prefix: "mcp-", Suffix: "-headless", Writer: managers.Service, named: true})
	BackendService  = made(Child{Kind: managers.ServiceKind, Prefix: "mcp-", Writer: managers.Service, named: true})
	Backend         = made(Child{
		Kind: managers.StatefulSet, Writer: managers.Backend, Replicas: managers.BackendReplicas, DependsOn: []*Child{BackendAccount}, named: true,
	})
	ProxyService = made(Child{Kind: managers.ServiceKind, Prefix: "mcp-", Suffix: "-proxy", Writer: managers.Service, named: true})
	Proxy        = made(Child{
		Kind: managers.Deployment, Writer: managers.Proxy, Replicas: managers.ProxyReplicas,
		DependsOn: []*Child{RunConfig, InlineAuthz, RunnerAccount, RunnerRole, RunnerBinding}, named: true,
	})
)

// made completes a child. Each kind has version v1 and a resource with a regular name.
func made(c Child) *Child {
	resource, _ := meta.UnsafeGuessKindToResource(c.Kind.WithVersion("v1"))
	c.Version, c.Resource, c.Selector = resource.Version, resource.Resource, cmp.Or(c.Selector, ofToolHive)
	return &c
}

// children has them in the order of creation: what a pod needs comes before the pod.
var children = []*Child{
	RunnerAccount, BackendAccount, RunnerRole, RunnerBinding, RunConfig, InlineAuthz,
	HeadlessService, BackendService, Backend, ProxyService, Proxy,
}

// Children returns the children of an MCPServer in the order in which they are made.
func Children() []*Child { return slices.Clone(children) }

// Kinds returns the kinds of children, each once, in the order in which the first of each is made.
func Kinds() []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, c := range children {
		if !slices.Contains(kinds, c.Kind) {
			kinds = append(kinds, c.Kind)
		}
	}
	return kinds
}

// Workloads returns the children whose number of replicas has a writer of its own.
func Workloads() []*Child {
	return slices.DeleteFunc(Children(), func(c *Child) bool { return c.Replicas == "" })
}

// Name returns the name of an MCPServer's child. It is without the digest, as ToolHive gives it, where the content is part
// of the name, see ContentName.
func (c *Child) Name(server string) string { return c.Prefix + server + c.Suffix }

// ContentName returns the name of an MCPServer's child that is named by its content.
func (c *Child) ContentName(server string, data map[string]string) string {
	return c.Name(server) + "-" + contentDigest(data)
}

// Ref names an MCPServer's child.
func (c *Child) Ref(namespace, server string) apply.ObjectRef {
	return apply.NewObjectRef(c.Kind, namespace, c.Name(server))
}

// Server returns the MCPServer that an object of the kind belongs to by its name; ok is false where it belongs to none.
// Children of different MCPServers can have the same name, see Owner.Check.
func (c *Child) Server(name string) (server string, ok bool) {
	if c.ByContent {
		name, _ = cutDigest(name)
	}
	if server, ok = strings.CutPrefix(name, c.Prefix); !ok {
		return "", false
	}
	server, ok = strings.CutSuffix(server, c.Suffix)
	return server, ok && server != ""
}

// GroupVersionResource returns the resource by which a client reaches the child.
func (c *Child) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: c.Kind.Group, Version: c.Version, Resource: c.Resource}
}

// APIVersion returns the version that the child is written in, which is that of its writers' field paths.
func (c *Child) APIVersion() string {
	return schema.GroupVersion{Group: c.Kind.Group, Version: c.Version}.String()
}

// Of returns a child of the kind; any, where there are several. It returns nil for a kind that no child is of.
func Of(kind schema.GroupKind) *Child {
	if i := slices.IndexFunc(children, func(c *Child) bool { return c.Kind == kind }); i >= 0 {
		return children[i]
	}
	return nil
}

// Named returns the child of an MCPServer that an object is by its kind and name; nil for none.
func Named(object apply.ObjectRef, server string) *Child {
	for _, c := range children {
		if found, ok := c.Server(object.Name); c.Kind == object.Kind && ok && found == server {
			return c
		}
	}
	return nil
}

// Match returns the child that an object of a kind may be by its name, whichever its MCPServer; where it may be several, they
// are selected alike. It returns nil for none.
func Match(kind schema.GroupKind, name string) *Child {
	for _, c := range children {
		if _, ok := c.Server(name); c.Kind == kind && ok {
			return c
		}
	}
	return nil
}

// Servers returns the names of the MCPServers of which an object may be a child by its kind and name, sorted.
func Servers(kind schema.GroupKind, name string) []string {
	var servers []string
	for _, c := range children {
		if server, ok := c.Server(name); c.Kind == kind && ok {
			servers = append(servers, server)
		}
	}
	slices.Sort(servers)
	return servers
}

// MainWriter returns the field manager whose claim makes a child of that kind and name Freehold's; it is empty for an
// object that is no child.
func MainWriter(kind schema.GroupKind, name string) string {
	if c := Match(kind, name); c != nil {
		return c.Writer
	}
	if c := Of(kind); c != nil {
		return c.Writer
	}
	return ""
}

// digestLength is how much of a content's SHA-256 is part of a name, in hexadecimal digits.
const digestLength = 16

// contentDigest identifies the data of a ConfigMap.
func contentDigest(data map[string]string) string {
	// A map of strings can always be encoded, and its keys are sorted.
	text, _ := json.Marshal(data)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:digestLength]
}

// cutDigest returns a name without the digest of a content that it ends with; found is false where it ends with none.
func cutDigest(name string) (base string, found bool) {
	at := len(name) - digestLength - 1
	if at <= 0 || name[at] != '-' || strings.Trim(name[at+1:], "0123456789abcdef") != "" {
		return name, false
	}
	return name[:at], true
}

// HasDigest reports whether a name ends with the digest of a content.
func HasDigest(name string) bool {
	_, found := cutDigest(name)
	return found
}
