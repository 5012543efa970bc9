// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// Every writer of a child is its main writer, or counts its replicas: what is taken over has an heir, whatever it is.
func TestEveryKindHasAnHeir(t *testing.T) {
	writers := managers.Registry().Writers()
	for _, w := range writers {
		if w.Name == managers.Ownership {
			continue
		}
		heirs := takeover.Heirs(writers, apply.ObjectRef{Kind: w.Kind}, managers.ProxyReplicas, managers.BackendReplicas)
		if len(heirs) == 0 || heirs[0].APIVersion == "" {
			t.Errorf("the heirs of a %s are %+v", w.Kind, heirs)
		}
	}
}

// The number of replicas passes to nobody unless there is a number to write; conditions of any type pass to ours.
func TestHeirs(t *testing.T) {
	covered := func(ref apply.ObjectRef, path fieldpath.Path, replicas ...string) (by string) {
		for _, heir := range takeover.Heirs(managers.Registry().Writers(), ref, replicas...) {
			if heir.Covers(path) {
				by += heir.Manager
			}
		}
		return by
	}
	deployment, server := apply.ObjectRef{Kind: managers.Deployment}, apply.ObjectRef{Kind: managers.MCPServer}
	config, group := apply.ObjectRef{Kind: v1beta1.Kind(v1beta1.MCPToolConfigKind)}, apply.ObjectRef{Kind: v1beta1.Kind(v1beta1.MCPGroupKind)}
	finalizer := fieldpath.MakePathOrDie("metadata", "finalizers", value.NewValueInterface(v1beta1.FinalizerToolConfig))
	replicas := fieldpath.MakePathOrDie("spec", "replicas")
	condition := fieldpath.MakePathOrDie("status", "conditions", fieldpath.KeyByFields("type", "Odd"), "reason")
	for name, c := range map[string]struct{ got, want string }{
		"no number":           {covered(deployment, replicas), ""},
		"a number":            {covered(deployment, replicas, managers.ProxyReplicas), managers.ProxyReplicas},
		"a template":          {covered(deployment, fieldpath.MakePathOrDie("spec", "template")), managers.Proxy},
		"a condition":         {covered(server, condition), managers.Status},
		"the conditions":      {covered(server, fieldpath.MakePathOrDie("status", "conditions")), ""},
		"the finalizers":      {covered(server, fieldpath.MakePathOrDie("metadata", "finalizers")), ""},
		"a finalizer":         {covered(config, finalizer), managers.ConfigFinalizer},
		"a hash":              {covered(config, fieldpath.MakePathOrDie("status", "configHash")), managers.ConfigStatus},
		"an old field":        {covered(config, fieldpath.MakePathOrDie("status", "referenceCount")), managers.ConfigStatus},
		"a config's":          {covered(config, condition), managers.ConfigStatus},
		"all of a config":     {covered(config, fieldpath.MakePathOrDie("status", "conditions")), ""},
		"members":             {covered(group, fieldpath.MakePathOrDie("status", "servers")), managers.GroupStatus},
		"an annotation of it": {covered(server, fieldpath.MakePathOrDie("metadata", "annotations", "a")), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s passes to %q, want %q", name, c.got, c.want)
		}
	}
}

func TestUntaken(t *testing.T) {
	ref := apply.ObjectRef{Kind: managers.StatefulSet}
	theirs := metav1.ManagedFieldsEntry{Manager: managers.ToolHiveRunner, Operation: metav1.ManagedFieldsOperationApply}
	ours := metav1.ManagedFieldsEntry{Manager: managers.Backend, Operation: metav1.ManagedFieldsOperationApply}
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"nobody's": {nil, false}, "ToolHive's": {[]metav1.ManagedFieldsEntry{theirs}, true},
		"ours": {[]metav1.ManagedFieldsEntry{ours}, false}, "of both": {[]metav1.ManagedFieldsEntry{theirs, ours}, false},
	} {
		if got := takeover.Untaken(ref, &metav1.ObjectMeta{ManagedFields: c.entries}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestGate(t *testing.T) {
	for value, closed := range map[string]bool{
		"": false, "x": false, "-3": false, "0": false, "1": false, "2": true, "9223372036854775807": true, "9223372036854775808": false,
	} {
		if got := takeover.Closed(takeover.Gate(value)); got != closed {
			t.Errorf("gate %q is closed: %t", value, got)
		}
	}
}
