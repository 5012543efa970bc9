// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import "slices"

// Filter reports whether an event is wanted.
type Filter func(*Event) bool

// Writes wants requests that were meant to change something.
func Writes() Filter { return (*Event).IsWrite }

// Applies wants server-side applies.
func Applies() Filter { return (*Event).IsApply }

// Succeeded wants requests that were answered with success.
func Succeeded() Filter { return (*Event).Succeeded }

// User wants requests in the name of one of the users: of the impersonated one, where there is one.
func User(names ...string) Filter {
	return func(e *Event) bool {
		if e.ImpersonatedUser != "" {
			return slices.Contains(names, e.ImpersonatedUser)
		}
		return slices.Contains(names, e.User)
	}
}

// ServiceAccount wants requests in the name of a ServiceAccount.
func ServiceAccount(namespace, name string) Filter {
	return User("system:serviceaccount:" + namespace + ":" + name)
}

// Verb wants requests with one of the verbs.
func Verb(verbs ...string) Filter {
	return func(e *Event) bool { return slices.Contains(verbs, e.Verb) }
}

// Resource wants requests about a resource and its subresources. The core group is "".
func Resource(group, resource string) Filter {
	return func(e *Event) bool { return e.Group == group && e.Resource == resource }
}

// Namespace wants requests about something in a namespace.
func Namespace(name string) Filter {
	return func(e *Event) bool { return e.Namespace == name }
}

// Not returns a filter for the events that the filter does not want.
func Not(filter Filter) Filter {
	return func(e *Event) bool { return !filter(e) }
}

// Any returns a filter for the events that at least one of the filters wants.
func Any(filters ...Filter) Filter {
	return func(e *Event) bool {
		return slices.ContainsFunc(filters, func(f Filter) bool { return f(e) })
	}
}

// all returns a filter for the events that every one of the filters wants.
func all(filters []Filter) Filter {
	return func(e *Event) bool {
		return !slices.ContainsFunc(filters, func(f Filter) bool { return !f(e) })
	}
}
