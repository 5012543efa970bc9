// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// configMaps keeps the names of the ConfigMaps of namespaces: a command that looks at all MCPServers of a namespace would otherwise list
// them once for each. What is kept is as old as the list of these MCPServers, which is read once as well. A write of the plugin, after
// which the operator may create ConfigMaps, discards it.
type configMaps struct {
	mutex sync.Mutex
	kept  map[string]*listing
}

// listing is the answer about one namespace.
type listing struct {
	once  sync.Once
	names []string
	err   error
}

// of returns the answer about a namespace, which may still have to be asked for.
func (m *configMaps) of(namespace string) *listing {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.kept == nil {
		m.kept = map[string]*listing{}
	}
	if m.kept[namespace] == nil {
		m.kept[namespace] = &listing{}
	}
	return m.kept[namespace]
}

// forget discards the answer about a namespace, unless there is another one by now.
func (m *configMaps) forget(namespace string, old *listing) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.kept[namespace] == old {
		delete(m.kept, namespace)
	}
}

// discard discards all answers.
func (m *configMaps) discard() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.kept = nil
}

// configMapNames returns the names of a namespace's ConfigMaps, which it lists once. That the user may not list them is kept as well; any
// other error is not.
func (c *Client) configMapNames(namespace string) ([]string, error) {
	l := c.configs.of(namespace)
	l.once.Do(func() {
		list, err := c.listed(versions[managers.ConfigMap], namespace, metav1.ListOptions{}, onlyMetadata)
		if l.err = err; err != nil {
			return
		}
		for i := range list.Items {
			l.names = append(l.names, list.Items[i].GetName())
		}
	})
	if l.err != nil && !apierrors.IsForbidden(l.err) {
		c.configs.forget(namespace, l)
	}
	return l.names, l.err
}

// onlyMetadata makes requests for the metadata of objects, without the rest. An API server that does not know that answers with the objects.
func onlyMetadata(config *rest.Config) {
	config.AcceptContentTypes = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
}
