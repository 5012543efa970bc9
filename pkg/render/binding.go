// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"regexp"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// selected are the paths of a workload that bind pods to it, and to the Services that select them; marks are the annotations of ToolHive
// and Freehold in the template, such as checksums, UIDs of configurations, and the generation at which a proxyrunner writes nothing.
const (
	selected = `^\.spec\.(selector|serviceName)|^\.spec\.template\.metadata\.labels\.(app$|app\.kubernetes\.io/|toolhive)`
	marks    = `^\.spec\.template\.metadata\.annotations\.(toolhive\.stacklok|freehold)\.dev/`
	account  = `^\.spec\.template\.spec\.serviceAccountName`
	// containers precedes the field of a container.
	containers = `^\.spec\.template\.spec\.containers\[[^]]*\]\.`
)

// binding has, for each kind, the paths of the fields that bind a pod to its policy, its process or its address.
var binding = map[schema.GroupKind]*regexp.Regexp{
	managers.MCPServer:   regexp.MustCompile(`^\.metadata\.finalizers`),
	managers.ConfigMap:   regexp.MustCompile(`^\.(data|binaryData|immutable)`),
	managers.ServiceKind: regexp.MustCompile(`^\.spec\.(selector|ports|type|clusterIP|externalName)`),
	managers.Deployment: regexp.MustCompile(selected + `|` + marks + `|` + account +
		`|^\.spec\.template\.spec\.volumes|` + containers + `(args|command|env|envFrom|ports|volumeMounts)`),
	managers.StatefulSet: regexp.MustCompile(selected + `|` + marks + `|` + account + `|` + containers + `(args|command|ports)`),
}

// Binds reports whether a field of a child, or the finalizer of the MCPServer itself, binds a pod to its policy, its process or its
// address: with another value than Freehold wants, what runs is not what the MCPServer asks for. Other fields may be set otherwise by
// admission, as policies do that pin the digest of an image.
func Binds(server *v1beta1.MCPServer, kind schema.GroupKind, path string) bool {
	if path == ReplicasPath {
		return server.Spec.Transport == v1beta1.TransportStdio
	}
	fields := binding[kind]
	return fields != nil && fields.MatchString(path)
}
