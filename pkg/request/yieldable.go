// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
	unyieldable, notOfProxy, notOfBackend = NewIndex(Unyieldable), NewIndex(unyieldableOfProxy), NewIndex(unyieldableOfBackend)
	// strategyType is the field with which those of unyieldableOfBackend are left to others.
	strategyType = fieldmanager.Path("spec", "updateStrategy", "type")
)

// Yieldable reports whether a field may be left to others by its own path. The RunConfig, authorization policies and the rights of the
// proxyrunner may not: an MCPServer must not run with less protection than it asks for.
func Yieldable(object apply.ObjectRef, path fieldpath.Path) bool {
	return hasYieldable(object.Kind) && !unyieldable.Of(object).Has(path) &&
		(object.Kind != managers.Deployment || !notOfProxy.Of(object).Has(path)) && !followsStrategy(object, path)
}

// followsStrategy reports whether a field is left to others exactly if strategyType is.
func followsStrategy(object apply.ObjectRef, path fieldpath.Path) bool {
	return object.Kind == managers.StatefulSet && notOfBackend.Of(object).Has(path)
}

// YieldablePath is Yieldable for a path as a conflict names it.
func YieldablePath(object apply.ObjectRef, path string) bool {
	kept := func(s Selector) bool {
		rest, below := strings.CutPrefix(path, s.Path)
		return below && (rest == "" || !isEntry(s.Path) && (rest[0] == '.' || rest[0] == '['))
	}
	return hasYieldable(object.Kind) && !slices.ContainsFunc(Unyieldable, kept) &&
		(object.Kind != managers.Deployment || !slices.ContainsFunc(unyieldableOfProxy, kept)) &&
		(object.Kind != managers.StatefulSet || !slices.ContainsFunc(unyieldableOfBackend, kept))
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

// isEntry reports whether a path is that of one label or annotation, whose key may have dots.
func isEntry(path string) bool {
	return strings.HasPrefix(path, ".metadata.labels.") || strings.HasPrefix(path, ".metadata.annotations.")
}

func hasYieldable(kind schema.GroupKind) bool {
	switch kind {
	case managers.Deployment, managers.StatefulSet, managers.ServiceKind:
		return true
	default:
		return false
	}
}
