// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// Client talks to one cluster as one user. Commands work on one MCPServer after the other: Children and writes must not run at the same
// time.
type Client struct {
	// Caller makes commands about the cluster.
	Caller
	getter genericclioptions.RESTClientGetter
	// Namespace is the one that the user means when they name none.
	Namespace string
	// TryAs is the user that dry runs of the operator's writes impersonate; empty for the user who runs the plugin.
	TryAs string

	// configMaps are the answers about the ConfigMaps of namespaces, see configMapNames.
	configMaps map[string]answer
}

// New returns a client for the user's flags and kubeconfig.
func New(getter genericclioptions.RESTClientGetter) (*Client, error) {
	namespace, _, err := getter.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	return &Client{getter: getter, Namespace: namespace}, nil
}

// versions are those in which Freehold writes its kinds, and the plugin reads them.
var versions = func() map[schema.GroupKind]schema.GroupVersionResource {
	found := map[schema.GroupKind]schema.GroupVersionResource{managers.MCPServer: v1beta1.SchemeGroupVersion.WithResource("mcpservers")}
	for _, child := range inventory.Children() {
		found[child.Kind] = child.GroupVersionResource()
	}
	for _, config := range managers.Configs() {
		found[config.GroupKind()] = config.GroupVersionResource()
	}
	return found
}()

// VersionOf returns one of Freehold's kinds in the version in which Freehold writes it.
func VersionOf(kind schema.GroupKind) schema.GroupVersionKind {
	return kind.WithVersion(versions[kind].Version)
}

// Named returns the objects that the arguments name, as they do for kubectl get: KIND/NAME, KIND NAME..., or KIND for
// all, or those with the labels of a selector.
func (c *Client) Named(selector string, all bool, args ...string) ([]*unstructured.Unstructured, error) {
	find := func(page int64) ([]*resource.Info, error) {
		return c.builder(args...).AllNamespaces(all).LabelSelectorParam(selector).RequestChunksOf(page).Latest().Flatten().Do().Infos()
	}
	infos, err := find(page)
	if apierrors.IsResourceExpired(err) {
		infos, err = find(0) // As in listed: the API server knows the next page no more.
	}
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for _, info := range infos {
		object, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("%s: the API server answered with a %T", info.ObjectName(), info.Object)
		}
		found = append(found, object)
	}
	return found, nil
}

// Names returns the names of the objects of a kind, which is named as for kubectl get. It reads no more than their metadata.
func (c *Client) Names(kind string) (names []string, err error) {
	mapping, err := c.builder(kind).Do().ResourceMapping()
	if err != nil {
		return nil, err
	}
	namespace := c.Namespace
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	return c.names(mapping.Resource, namespace)
}

// builder resolves arguments as kubectl get does.
func (c *Client) builder(args ...string) *resource.Builder {
	return resource.NewBuilder(c.getter).Unstructured().NamespaceParam(c.Namespace).DefaultNamespace().ResourceTypeOrNameArgs(true, args...)
}

// Get returns an object of one of Freehold's kinds, in the version in which Freehold writes it.
func (c *Client) Get(ref apply.ObjectRef) (*unstructured.Unstructured, error) {
	return c.get(versions[ref.Kind], ref.Namespace, ref.Name)
}

// Server returns the MCPServer that the user names as NAME or KIND/NAME.
func (c *Client) Server(argument string) (*v1beta1.MCPServer, error) {
	if !NamesServer(argument) {
		return nil, fmt.Errorf("%s is not an MCPServer; give mcpserver/NAME", argument)
	}
	return as[v1beta1.MCPServer](c.Get(ServerRef(c.Namespace, argument[strings.Index(argument, "/")+1:])))
}

// Servers returns the MCPServers of the namespace; of all with an empty one.
func (c *Client) Servers(namespace string) ([]*v1beta1.MCPServer, error) {
	return list[v1beta1.MCPServer](c, versions[managers.MCPServer], namespace, metav1.ListOptions{})
}

// All returns the objects of a kind in the namespace; in all with an empty one.
func (c *Client) All(version schema.GroupVersionResource, namespace string) ([]metav1.Object, error) {
	found, err := c.listed(version, namespace, metav1.ListOptions{})
	var objects []metav1.Object
	for i := range found {
		objects = append(objects, &found[i])
	}
	return objects, err
}

// NamespacesOf returns the namespaces of some objects, sorted, each once.
func NamespacesOf[O metav1.Object](objects []O) []string {
	namespaces := sets.New[string]()
	for _, object := range objects {
		namespaces.Insert(object.GetNamespace())
	}
	return sets.List(namespaces)
}

// ServerRef names an MCPServer.
func ServerRef(namespace, name string) apply.ObjectRef {
	return apply.NewObjectRef(managers.MCPServer, namespace, name)
}

// NamesServer reports whether the user means an MCPServer by an argument: NAME, or KIND/NAME with its kind, as kubectl takes it, but for
// ToolHive's kind also where another product has one of that name.
func NamesServer(argument string) bool {
	kind, _, found := strings.Cut(strings.ToLower(argument), "/")
	kind, group, qualified := strings.Cut(kind, ".")
	_, behindVersion, _ := strings.Cut(group, ".")
	ours := !qualified || group == managers.MCPServer.Group || behindVersion == managers.MCPServer.Group
	return !found || ours && (kind == "mcpserver" || kind == "mcpservers")
}

// as returns an object that was read as a typed one.
func as[T any](object *unstructured.Unstructured, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, fmt.Errorf("%s %s cannot be read: %w", object.GetKind(), object.GetName(), err)
	}
	return typed, nil
}

// asUnstructured returns an answer of the API server as what it is.
func asUnstructured(object runtime.Object, err error) (*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}
	found, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the API server answered with a %T", object)
	}
	return found, nil
}

// helper sends requests about one of Freehold's kinds. It needs no discovery.
func (c *Client) helper(kind schema.GroupKind, changes ...func(*rest.Config)) (*resource.Helper, error) {
	return c.resource(versions[kind], meta.RESTScopeNamespace, changes...)
}

// resource sends requests about a kind of objects.
func (c *Client) resource(version schema.GroupVersionResource, scope meta.RESTScope, changes ...func(*rest.Config)) (*resource.Helper, error) {
	if version.Empty() {
		return nil, errors.New("Freehold does not write objects of this kind")
	}
	config, err := c.getter.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.ContentConfig = resource.UnstructuredPlusDefaultContentConfig()
	gv := version.GroupVersion()
	config.GroupVersion, config.APIPath = &gv, "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	for _, change := range changes {
		change(config)
	}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return resource.NewHelper(client, &meta.RESTMapping{Resource: version, Scope: scope}), nil
}

// Kinds that are none of Freehold's.
var (
	pods   = corev1.SchemeGroupVersion.WithResource("pods")
	events = corev1.SchemeGroupVersion.WithResource("events")
	leases = coordinationv1.SchemeGroupVersion.WithResource("leases")
)

// get reads an object as it is; an empty namespace is for a kind that has none.
func (c *Client) get(version schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	scope := meta.RESTScopeNamespace
	if namespace == "" {
		scope = meta.RESTScopeRoot
	}
	helper, err := c.resource(version, scope)
	if err != nil {
		return nil, err
	}
	return asUnstructured(helper.Get(namespace, name))
}

// list reads objects as typed ones; an empty namespace is for all.
func list[T any](c *Client, version schema.GroupVersionResource, namespace string, options metav1.ListOptions) (all []*T, err error) {
	found, err := c.listed(version, namespace, options)
	for i := range found {
		typed, err := as[T](&found[i], nil)
		if err != nil {
			return nil, err
		}
		all = append(all, typed)
	}
	return all, err
}

// names returns the names of objects; an empty namespace is for all.
func (c *Client) names(version schema.GroupVersionResource, namespace string) (names []string, err error) {
	found, err := c.listed(version, namespace, metav1.ListOptions{}, func(config *rest.Config) {
		// An API server that does not know how to leave the rest of the objects out answers with them.
		config.AcceptContentTypes = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
	})
	for i := range found {
		names = append(names, found[i].GetName())
	}
	return names, err
}

// page is how many objects are read at a time.
const page = 500

// listed reads objects as they are, in pages; an empty namespace is for all.
func (c *Client) listed(
	version schema.GroupVersionResource, namespace string, options metav1.ListOptions, changes ...func(*rest.Config),
) (all []unstructured.Unstructured, err error) {
	helper, err := c.resource(version, meta.RESTScopeNamespace, changes...)
	if err != nil {
		return nil, err
	}
	for options.Limit = page; ; {
		answer, err := helper.List(namespace, version.GroupVersion().String(), &options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			// It took too long to get here. The API server knows the next page no more: all at once, then.
			options.Limit, options.Continue, all = 0, "", nil
			continue
		}
		if err != nil {
			return nil, err
		}
		found, ok := answer.(*unstructured.UnstructuredList)
		if !ok {
			return nil, fmt.Errorf("the API server answered with a %T", answer)
		}
		all = append(all, found.Items...)
		if options.Continue = found.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}

// Kinds returns the kinds of the cluster's objects by the names that kubectl takes.
func (c *Client) Kinds() ([]string, error) {
	discovery, err := c.getter.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	// An aggregated API that does not answer leaves the others as they are.
	lists, err := discovery.ServerPreferredResources()
	if len(lists) == 0 {
		return nil, err
	}
	var kinds []string
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			kinds = append(kinds, schema.GroupResource{Group: gv.Group, Resource: list.APIResources[i].Name}.String())
		}
	}
	return kinds, nil
}
