// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// WriteCount counts the writes made for one MCPServer by what was written, for example "proxy", "proxy replicas",
// "finalizer", "status", "requests", "takeover", "delete service/backend", "event". A write that did not succeed has its code behind it.
type WriteCount map[string]int

// CountWrites counts those writes of operators that are for an MCPServer.
func CountWrites(server string, writes []*audit.Event) WriteCount {
	count := WriteCount{}
	for _, e := range writes {
		if item, ok := itemOf(server, e); ok {
			count[item]++
		}
	}
	return count
}

func itemOf(server string, e *audit.Event) (item string, ok bool) {
	if e.Resource == "events" {
		return "event", regards(server, e)
	}
	form, ok := componentOf(server, schema.GroupResource{Group: e.Group, Resource: e.Resource}, e.Name)
	if !ok {
		return "", false
	}
	switch item = string(form.Component); {
	case e.Verb == "delete":
		item = "delete " + item
	case e.FieldManager == managers.Status:
		item = "status"
	case e.FieldManager == managers.Requests:
		item = "requests"
	case e.FieldManager == managers.Takeover:
		item = "takeover"
	case form.Component == ServerItself:
		item = "finalizer"
	case e.FieldManager == form.Replicas:
		item += " replicas"
	}
	if !e.Succeeded() {
		item += fmt.Sprintf(" (%d)", e.Code)
	}
	return item, true
}

// regards tells whether a write of an event is about an MCPServer.
func regards(server string, e *audit.Event) bool {
	if e.Verb != "create" {
		return strings.HasPrefix(e.Name, server+".")
	}
	var body struct{ Regarding struct{ Name string } }
	return json.Unmarshal(e.Body, &body) == nil && body.Regarding.Name == server
}

// Lost removes those writes from a count that lost a race against the control plane, and returns them by component. A
// workload's controller writes its status again and again while pods come and go, and the garbage collector takes
// references away and deletes; each time a write that was under way for an earlier resourceVersion is refused. It has
// changed nothing, and is made again if there still is a cause.
func (c WriteCount) Lost() map[Component]int {
	lost := map[Component]int{}
	for _, form := range forms {
		items := []string{
			fmt.Sprintf("delete %s (%d)", form.Component, http.StatusConflict),
			fmt.Sprintf("delete %s (%d)", form.Component, http.StatusNotFound), // A cache did not show the delete yet.
			fmt.Sprintf("%s (%d)", form.Component, http.StatusConflict),
		}
		if form.Replicas != "" {
			items = append(items, fmt.Sprintf("%s replicas (%d)", form.Component, http.StatusConflict))
		}
		for _, item := range items {
			if count, ok := c[item]; ok {
				lost[form.Component] += count
				delete(c, item)
			}
		}
	}
	return lost
}

// Without returns the count without some items, for example the status.
func (c WriteCount) Without(items ...string) WriteCount {
	rest := maps.Clone(c)
	maps.DeleteFunc(rest, func(item string, _ int) bool { return slices.Contains(items, item) })
	return rest
}

// Once returns the count of writing each of these once.
func Once(items ...string) WriteCount {
	count := WriteCount{}
	for _, item := range items {
		count[item]++
	}
	return count
}

// CreationWrites returns the writes that create an MCPServer with these components and managers of replicas, without those
// of its status: one apply for each child and writer, and one for the finalizer.
func CreationWrites(components []Component, replicas ...Component) WriteCount {
	count := WriteCount{}
	for _, component := range components {
		if component == ServerItself {
			count["finalizer"] = 1
			continue
		}
		count[string(component)] = 1
	}
	for _, component := range replicas {
		count[string(component)+" replicas"] = 1
	}
	return count
}
