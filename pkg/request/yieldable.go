// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// Unyieldable are fields of workloads and Services that cannot be yielded: those that identify the object's owner and
// source, the label that informers select by, and those that keep a proxyrunner from writing the object.
var Unyieldable = []Selector{
	{Path: ".metadata.ownerReferences"},
	{Path: ".metadata.labels." + v1beta1.LabelToolHive},
	{Path: ".metadata.annotations." + v1beta1.AnnotationSource},
	{Path: ".metadata.annotations." + v1beta1.AnnotationReferences},
	{Path: ".metadata.annotations." + v1beta1.AnnotationReplicasSource},
	{Path: ".metadata.annotations." + v1beta1.AnnotationReplicasWritten},
	{Path: ".spec.selector"},
	{Path: ".spec.template.metadata.annotations." + v1beta1.AnnotationGeneration},
	{Path: `.spec.template.spec.containers[name="toolhive"].env[name="THV_MCPSERVER_GENERATION"]`},
}

// unyieldableOfProxy are further fields of the proxy's Deployment: those that make its pods read the RunConfig and the
// authorization policy that the MCPServer asks for, and have the rights that it gives them. Volumes and mounts count as a
// whole.
var unyieldableOfProxy = []Selector{
	{Path: ".spec.template.metadata.annotations." + v1beta1.AnnotationRunConfigChecksum},
	{Path: ".spec.template.metadata.annotations." + v1beta1.AnnotationConfigUIDs},
	{Path: ".spec.template.spec.serviceAccountName"},
	{Path: `.spec.template.spec.volumes[name="runconfig"]`},
	{Path: `.spec.template.spec.volumes[name="authz-config"]`},
	{Path: `.spec.template.spec.containers[name="toolhive"].volumeMounts[mountPath="/etc/runconfig"]`},
	{Path: `.spec.template.spec.containers[name="toolhive"].volumeMounts[mountPath="/etc/toolhive/authz"]`},
}

// unyieldableOfBackend are further fields of the backend's StatefulSet. The API server refuses the update strategy OnDelete beside
// the settings of a rolling update, so these are left to others together with the type of the strategy, and not by themselves.
var unyieldableOfBackend = []Selector{{Path: ".spec.updateStrategy.rollingUpdate"}}

var (
	notOfAny, notOfProxy, notOfBackend = selectorsOf(Unyieldable), selectorsOf(unyieldableOfProxy), selectorsOf(unyieldableOfBackend)
	// strategyType is the field with which those of unyieldableOfBackend are left to others.
	strategyType = fieldmanager.Path("spec", "updateStrategy", "type")
)

// Yieldable reports whether a field may be left to others by its own path. The RunConfig, authorization policies and the rights of the
// proxyrunner may not: an MCPServer must not run with less protection than it asks for.
func Yieldable(object apply.ObjectRef, path fieldpath.Path) bool {
	return yieldable(object, textsOf(path))
}

// YieldablePath is Yieldable for a path as a conflict names it.
func YieldablePath(object apply.ObjectRef, path string) bool {
	return yieldable(object, Elements(path))
}

func yieldable(object apply.ObjectRef, path []string) bool {
	switch object.Kind {
	case managers.Deployment, managers.StatefulSet, managers.ServiceKind:
		return len(notOfAny.selecting(object, path)) == 0 && !followsStrategy(object, path) &&
			(object.Kind != managers.Deployment || len(notOfProxy.selecting(object, path)) == 0)
	default:
		return false
	}
}

// followsStrategy reports whether a field is left to others exactly if strategyType is.
func followsStrategy(object apply.ObjectRef, path []string) bool {
	return object.Kind == managers.StatefulSet && len(notOfBackend.selecting(object, path)) > 0
}

// YieldableBy is YieldablePath for a field of a conflict, whose path by Settling is left to others.
func YieldableBy(object apply.ObjectRef, path string, removed bool) bool {
	whole, name := settling(path, removed)
	switch {
	case name == ports:
		return false // As long as the other port exists, the API server refuses the writer's port of the same name.
	case whole != "":
		path = whole + ".value"
	}
	return YieldablePath(object, path)
}

// unions are the parts of a pod or a Service that have one of several alternatives, by the name with which the path of such a part
// begins, and how many elements of the path it has. The source of a variable is settled with the variable.
var unions = map[string]int{
	".env": 2, ".volumes": 2, ".startupProbe": 1, ".livenessProbe": 1, ".readinessProbe": 1, ".lifecycle": 2, ports: 2,
}

// ports is the name of a list in which two entries may not have the same name.
const ports = ".ports"

// Settling returns the path that settles a conflict about a field: its own. Of a field that is removed because the writer sets an
// alternative to it, such as the value of an environment variable that has another source, it is the path of the whole: the field could
// not be left to its owner alone.
func Settling(path string, removed bool) string {
	if whole, _ := settling(path, removed); whole != "" {
		return whole
	}
	return path
}

// settling returns the path of the whole that a removed field is part of, and the name with which it begins; empty for none.
func settling(path string, removed bool) (whole, name string) {
	root := ".spec.template.spec"
	if strings.HasPrefix(path, ".spec"+ports) { // of a Service
		root = ".spec"
	}
	rest, within := strings.CutPrefix(path, root)
	if !removed || !within {
		return "", ""
	}
	elements := Elements(rest)
	for i, element := range elements {
		if n := unions[element]; n > 0 && i+n <= len(elements) {
			return root + strings.Join(elements[:i+n], ""), element
		}
	}
	return "", ""
}
