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

// Cost counts the writes made for one MCPServer by what was written, for example "proxy", "proxy replicas",
// "finalizer", "status", "requests", "delete service/backend", "event". A write that did not succeed has its code behind it.
type Cost map[string]int

// CostOf counts the writes for an MCPServer of those that operators made.
func CostOf(server string, writes []*audit.Event) Cost {
	cost := Cost{}
	for _, e := range writes {
		if item, ok := itemOf(server, e); ok {
			cost[item]++
		}
	}
	return cost
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

// Lost takes those writes out of a cost that lost a race against the control plane, and returns them by component. A
// workload's controller writes its status again and again while pods come and go, and the garbage collector takes
// references away and deletes; each time a write that was under way for an earlier resourceVersion is refused. It has
// changed nothing, and is made again if there still is a cause.
func (c Cost) Lost() map[Component]int {
	lost := map[Component]int{}
	for _, form := range forms {
		items := []string{
			fmt.Sprintf("delete %s (%d)", form.Component, http.StatusConflict),
			fmt.Sprintf("delete %s (%d)", form.Component, http.StatusNotFound), // A cache did not show the delete yet.
		}
		if form.Replicas != "" {
			items = append(items, fmt.Sprintf("%s (%d)", form.Component, http.StatusConflict),
				fmt.Sprintf("%s replicas (%d)", form.Component, http.StatusConflict))
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

// Without returns the cost without some items, for example the status.
func (c Cost) Without(items ...string) Cost {
	rest := maps.Clone(c)
	maps.DeleteFunc(rest, func(item string, _ int) bool { return slices.Contains(items, item) })
	return rest
}

// Once is the cost of writing each of these once.
func Once(items ...string) Cost {
	cost := Cost{}
	for _, item := range items {
		cost[item]++
	}
	return cost
}

// CreationCost is what an MCPServer with these components, and managers of replicas, costs but for its status: one apply
// for each child and writer, and one for the finalizer.
func CreationCost(components []Component, replicas ...Component) Cost {
	cost := Cost{}
	for _, component := range components {
		if component == ServerItself {
			cost["finalizer"] = 1
			continue
		}
		cost[string(component)] = 1
	}
	for _, component := range replicas {
		cost[string(component)+" replicas"] = 1
	}
	return cost
}
