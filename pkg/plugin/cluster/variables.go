// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// watchNamespace is the variable with the namespaces that an operator watches, ToolHive's as well as Freehold's.
const watchNamespace = "WATCH_NAMESPACE"

// reference is a reference to a variable, such as $(NAME), or a dollar sign that begins none, $$.
var reference = regexp.MustCompile(`\$\$|\$\([^)]*\)`)

// environmentOf returns the variables of a container of a pod in a namespace, with the values that the kubelet gives them. One whose value
// the specification does not show, such as a variable from a ConfigMap, is a reference to itself, $(NAME), and so is what is made from it.
func environmentOf(namespace string, container *corev1.Container) map[string]string {
	env := map[string]string{}
	for i := range container.Env {
		variable := &container.Env[i]
		switch from := variable.ValueFrom; {
		case from == nil:
			env[variable.Name] = expand(variable.Value, env)
		case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
			env[variable.Name] = namespace
		default:
			env[variable.Name] = "$(" + variable.Name + ")"
		}
	}
	return env
}

// expand puts the values of variables in the place of references, as the kubelet does: those to unknown variables stay.
func expand(text string, env map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		if value, ok := env[found[2:len(found)-1]]; ok {
			return value
		}
		return found
	})
}

// isShown reports whether a value has no reference to a variable whose value is not known.
func isShown(value string) bool { return !strings.Contains(value, "$(") }

// areNamespaces reports whether an operator can watch namespaces of these names. A reference to an unknown variable is no such name.
func areNamespaces(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return len(validation.IsDNS1123Label(name)) > 0 })
}

// shown returns an error for the first of some flags whose value is not known.
func shown(flags ...*pflag.Flag) error {
	for _, flag := range flags {
		if value := flag.Value.String(); !isShown(value) {
			return fmt.Errorf("the operator's arguments: its Deployment does not show the value of --%s, which is %s", flag.Name, value)
		}
	}
	return nil
}
