// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"net/http"
	"strconv"
	"strings"
)

// Match reports whether a request is meant. It is called from many goroutines and must not change the request.
type Match func(*http.Request) bool

// Watches matches the watches of a resource, of one namespace or of all. The group is empty for the core.
func Watches(group, resource string) Match {
	return func(r *http.Request) bool {
		watch, err := strconv.ParseBool(r.URL.Query().Get("watch"))
		return r.Method == http.MethodGet && err == nil && watch && concerns(r, group, resource)
	}
}

// Reads matches all requests that read a resource, watches included.
func Reads(group, resource string) Match {
	return func(r *http.Request) bool { return r.Method == http.MethodGet && concerns(r, group, resource) }
}

// Patches matches the patches of a resource and its subresources, which applies are among.
func Patches(group, resource string) Match {
	return func(r *http.Request) bool { return r.Method == http.MethodPatch && concerns(r, group, resource) }
}

// concerns reports whether a request is about a resource, by its path: /api/version/... for the core and
// /apis/group/version/... for all else, followed by [namespaces/name/]resource[/name[/subresource]].
func concerns(r *http.Request, group, resource string) bool {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(path) > 2 && path[0] == "api" && group == "":
		path = path[2:]
	case len(path) > 3 && path[0] == "apis" && path[1] == group:
		path = path[3:]
	default:
		return false
	}
	if len(path) > 2 && path[0] == "namespaces" {
		path = path[2:]
	}
	return path[0] == resource
}
