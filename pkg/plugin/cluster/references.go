// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivescheme "github.com/freehold-dev/freehold/generated/clientset/versioned/scheme"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/bounds"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// References reads the objects that an MCPServer refers to, and the ConfigMaps that these name. Objects that do not exist are left
// out. A kind that the API server does not serve, or of which the user may not read an object, is Unavailable.
func (c *Client) References(server *v1beta1.MCPServer) (render.References, error) {
	var failure error
	in := render.Collect(&server.Spec, func(kind, name string) (any, *render.Unavailable) {
		found, unavailable, err := c.config(kind, server.Namespace, name)
		if failure == nil {
			failure = err
		}
		return found, unavailable
	})
	if failure == nil {
		in.AddBundles(func(name string) (found *corev1.ConfigMap, ok bool) {
			found, failure = c.configMap(server.Namespace, name)
			return found, failure == nil
		})
	}
	return in, failure
}

// config reads an object of a kind that MCPServers refer to; nil when it does not exist.
func (c *Client) config(kind, namespace, name string) (any, *render.Unavailable, error) {
	row := managers.ConfigOf(v1beta1.Kind(kind))
	resource := row.GroupVersionResource()
	object, err := c.get(resource, namespace, name)
	switch {
	case apply.IsAbsent(err):
		return nil, nil, nil
	case apierrors.IsNotFound(err):
		unavailable := render.Unserved(kind)
		return nil, &unavailable, nil
	case apierrors.IsForbidden(err):
		return nil, &render.Unavailable{Cause: fmt.Sprintf("you may not get %s in the namespace %s", resource.GroupResource(), namespace)}, nil
	case err != nil:
		return nil, nil, fmt.Errorf("%s %s cannot be read: %w", kind, name, err)
	}
	found, err := toolhivescheme.Scheme.New(row.GroupVersionKind)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, found)
	}
	return found, nil, err
}

// Config returns the object that the user names as KIND/NAME, of a kind that MCPServers refer to.
func (c *Client) Config(argument string) (*unstructured.Unstructured, error) {
	found, err := c.Named("", false, argument)
	if err != nil {
		return nil, err
	}
	named := takeover.RefOf(found[0])
	if managers.ConfigOf(named.Kind) == nil {
		return nil, fmt.Errorf("%s is neither an MCPServer nor of a kind that MCPServers refer to", argument)
	}
	return c.Get(named) // in the version in which Freehold writes it
}

// Configs returns the objects of a namespace of the kinds that MCPServers refer to; of all namespaces with an empty one. Forbidden
// are the resources that the user may not list. A kind that the API server does not serve has no objects.
func (c *Client) Configs(namespace string) (found []*unstructured.Unstructured, forbidden []string, err error) {
	for _, row := range managers.Configs() {
		objects, err := c.listed(versions[row.GroupKind()], namespace, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case apierrors.IsForbidden(err):
			forbidden = append(forbidden, row.Resource)
			continue
		case err != nil:
			return nil, nil, err
		}
		for i := range objects {
			found = append(found, &objects[i])
		}
	}
	return found, forbidden, nil
}

// Dropped names the fields that an object was given by kubectl apply and that neither the API server nor Freehold knows; "" for none.
func Dropped(object metav1.Object, kind string) string {
	typed, err := toolhivescheme.Scheme.New(v1beta1.SchemeGroupVersion.WithKind(kind))
	if err != nil {
		return "" // Freehold reads no spec of this kind.
	}
	noted := typed.(metav1.Object)
	noted.SetAnnotations(object.GetAnnotations())
	return bounds.Dropped(bounds.Reduce(noted, 0))
}

// RefersTo reports whether an MCPServer refers to an object.
func RefersTo(server *v1beta1.MCPServer, object *unstructured.Unstructured) bool {
	return server.Namespace == object.GetNamespace() &&
		slices.Contains(configs.Of(&server.Spec), configs.Named{Kind: object.GetKind(), Name: object.GetName()})
}
