// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/render"
)

// Look reads everything that the operator would render an MCPServer from, and its children.
func (c *Client) Look(server *v1beta1.MCPServer, options render.Options) (desired.Input, *Children, error) {
	children, err := c.Children(server)
	if err != nil {
		return desired.Input{}, nil, err
	}
	in := desired.Input{Server: server, Child: children.Child, Options: options, Schema: Schema()}
	if authz := server.Spec.AuthzConfig; authz != nil && authz.ConfigMap != nil {
		if in.AuthzConfigMap, err = c.configMap(server.Namespace, authz.ConfigMap.Name); err != nil {
			return in, nil, err
		}
	}
	if profile := server.Spec.PermissionProfile; profile != nil && profile.Type == v1beta1.PermissionProfileTypeConfigMap {
		if in.PermissionProfileConfigMap, err = c.configMap(server.Namespace, profile.Name); err != nil {
			return in, nil, err
		}
	}
	return in, children, nil
}

// configMap returns a ConfigMap, or nil when there is none.
func (c *Client) configMap(namespace, name string) (*corev1.ConfigMap, error) {
	if name == "" {
		return nil, nil
	}
	object, err := c.Get(ref(managers.ConfigMap, namespace, name))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := &corev1.ConfigMap{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, found); err != nil {
		return nil, fmt.Errorf("ConfigMap %s cannot be read: %w", name, err)
	}
	return found, nil
}
