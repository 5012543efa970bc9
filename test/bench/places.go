// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// places say in which namespaces MCPServers are. No two of these MCPServers have the same name, whatever their namespaces.
type places struct {
	// name is that of the only namespace, or what the names of several begin with.
	name string
	// servers is how many MCPServers there are, and each is how many of them a namespace has; 0 for all in one.
	servers, each int
}

// namespaceOf is the namespace of the MCPServer of a number.
func (p places) namespaceOf(i int) string {
	if p.each == 0 {
		return p.name
	}
	return fmt.Sprintf("%s-%03d", p.name, i/p.each)
}

// namespaces are all of them; the last one may have fewer MCPServers than the others.
func (p places) namespaces() (names []string) {
	if p.each == 0 {
		return []string{p.name}
	}
	for i := 0; i < p.servers; i += p.each {
		names = append(names, p.namespaceOf(i))
	}
	return names
}

// watched is the namespace to list and to watch. It is every one of the cluster if there are several, since each watch costs the API
// server something: holds then tells what counts.
func (p places) watched() string {
	if names := p.namespaces(); len(names) == 1 {
		return names[0]
	}
	return metav1.NamespaceAll
}

// holds reports whether an object, or what a watch shows of its deletion, is in one of the namespaces.
func (p places) holds(obj any) bool {
	object, ok := lastKnown(obj).(metav1.Object)
	if !ok {
		return false
	}
	if p.each == 0 {
		return object.GetNamespace() == p.name
	}
	return strings.HasPrefix(object.GetNamespace(), p.name+"-")
}

// handler shows what is in the namespaces to another handler.
func (p places) handler(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	return cache.FilteringResourceEventHandler{FilterFunc: p.holds, Handler: handler}
}

// some are the numbers of the MCPServers that are edited by hand, from as many namespaces as possible.
func (p places) some() (numbers []int) {
	count := min(p.servers, handEdits)
	for i := range count {
		numbers = append(numbers, i*p.servers/count)
	}
	return numbers
}

// workers is how many of Freehold's workers can be busy at a time: half of them for the first namespace, half of the rest for the second,
// and so on.
func (p places) workers(all int) (busy int) {
	for range p.namespaces() {
		busy += (all - busy + 1) / 2
	}
	return busy
}
