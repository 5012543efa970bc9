// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// stray takes the owner reference from a child.
func stray[L metav1.Object](object L) L {
	object.SetOwnerReferences(nil)
	return object
}

func TestDeletionIsDecided(t *testing.T) {
	const (
		proxy, service = "deployment.apps/web", "service/mcp-web-proxy"
		set            = "statefulset.apps/web"
	)
	server := newServer("web")
	attached, strayed := webProxy(server), stray(childOf(server, "mcp-web-proxy", &corev1.Service{}))
	inherited := stray(childOf(server, "mcp-web", &corev1.Service{}))
	inherited.Annotations[v1beta1.AnnotationSource] = "predecessor/3"
	going := stray(childOf(server, "mcp-web-headless", &corev1.Service{}))
	going.DeletionTimestamp = &metav1.Time{Time: bubbleStart}
	neighbours := stray(childOf(newServer("other"), "web-sa", &corev1.ServiceAccount{}))
	toolHives := stray(webBackend(server, func(set *appsv1.StatefulSet) {
		delete(set.Annotations, v1beta1.AnnotationSource)
		set.ManagedFields = []metav1.ManagedFieldsEntry{entry(managers.ToolHiveRunner, metav1.ManagedFieldsOperationApply, "apps/v1", ofGeneration)}
	}))
	for name, c := range map[string]struct {
		children     []metav1.Object
		finalizer    string
		doomed, left []string
		proved       bool
	}{
		"nothing is there":                  {},
		"all are the collector's":           {children: []metav1.Object{attached}},
		"one has lost its reference":        {children: []metav1.Object{attached, strayed}, doomed: []string{proxy, service}},
		"none has a reference":              {children: []metav1.Object{strayed}, left: []string{service}},
		"they were asked to stay":           {[]metav1.Object{attached, strayed}, metav1.FinalizerOrphanDependents, nil, []string{service}, false},
		"they were asked to stay after all": {[]metav1.Object{strayed}, metav1.FinalizerOrphanDependents, nil, []string{service}, true},
		"none was to stay":                  {children: []metav1.Object{strayed}, doomed: []string{service}, proved: true},
		"they were asked to go first":       {[]metav1.Object{strayed}, metav1.FinalizerDeleteDependents, []string{service}, nil, false},
		"a predecessor's stays":             {[]metav1.Object{inherited, strayed}, metav1.FinalizerDeleteDependents, []string{service}, []string{"service/mcp-web"}, false},
		"on its way out":                    {children: []metav1.Object{going}},
		"a neighbour's":                     {children: []metav1.Object{neighbours}},
		"the rest of what ToolHive made":    {children: []metav1.Object{toolHives}, doomed: []string{set}},
		"that, and one of ours without one": {children: []metav1.Object{toolHives, strayed}, left: []string{set, service}},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			if server.Finalizers = []string{v1beta1.Finalizer}; c.finalizer != "" {
				server.Finalizers = append(server.Finalizers, c.finalizer)
			}
			v := sees(server, c.children...)
			v.Ask = &outskirts{living: map[types.UID]string{"server-other": "other"}}
			d := decideDeletion(v, c.proved)
			if diff := cmp.Diff([][]string{c.doomed, c.left}, [][]string{refNames(d.doomed), refNames(d.left)}); diff != "" {
				t.Errorf("doomed and left (-want +got):\n%s", diff)
			}
			if d.orphaned != (c.finalizer == metav1.FinalizerOrphanDependents) || d.collecting != (c.finalizer != "") {
				t.Errorf("orphaned is %t, collecting %t", d.orphaned, d.collecting)
			}
		})
	}
}
