// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// tamper lets an operator make the MCPServer web, and changes one of its children once no operator runs any more.
func (s *Simulation) tamper(group, kind, name string, change func(obj runtime.Object)) {
	s.t.Helper()
	o := s.Start()
	s.createServer("web", nil)
	s.Settle()
	s.Kill(o)
	k := s.Server.KindOf(group, kind)
	obj, _ := s.Server.Get(k, s.Namespace, name)
	changed := obj.DeepCopyObject()
	change(changed)
	s.Server.Put(k, changed)
}

// TestOracleFindsAReadyMCPServerThatDoesNotServe changes what serves while no operator runs, so the status stays as it is.
func TestOracleFindsAReadyMCPServerThatDoesNotServe(t *testing.T) {
	tests := map[string]struct {
		group, kind, name string
		change            func(obj runtime.Object)
		want              string
	}{
		"as it was": {"apps", "Deployment", "web", func(runtime.Object) {}, ""},
		"no ready proxy": {"apps", "Deployment", "web", func(obj runtime.Object) {
			obj.(*appsv1.Deployment).Status.ReadyReplicas = 0
		}, "its Deployment"},
		"a proxy of an earlier template": {"apps", "Deployment", "web", func(obj runtime.Object) {
			obj.(*appsv1.Deployment).Status.UpdatedReplicas = 0
		}, "its Deployment"},
		"a backend that nobody has looked at": {"apps", "StatefulSet", "web", func(obj runtime.Object) {
			obj.(*appsv1.StatefulSet).Generation++
		}, "its StatefulSet"},
		"a backend of another owner": {"apps", "StatefulSet", "web", func(obj runtime.Object) {
			access(obj).SetOwnerReferences(nil)
		}, "not both of its workloads"},
		"a Service that goes": {"", "Service", "mcp-web-proxy", func(obj runtime.Object) {
			at := metav1.Now()
			access(obj).SetDeletionTimestamp(&at)
		}, "the Service of its URL"},
		"a Service of another owner": {"", "Service", "mcp-web-proxy", func(obj runtime.Object) {
			access(obj).SetOwnerReferences(nil)
		}, "the Service of its URL"},
		"a Service of other pods": {"", "Service", "mcp-web-proxy", func(obj runtime.Object) {
			obj.(*corev1.Service).Spec.Selector = map[string]string{"app": "nobody"}
		}, "the Service of its URL"},
		"a phase that says otherwise": {toolhive, "MCPServer", "web", func(obj runtime.Object) {
			if err := unstructured.SetNestedField(obj.(*unstructured.Unstructured).Object, "Failed", "status", "phase"); err != nil {
				panic(err)
			}
		}, "has the phase Failed, and its condition Ready is True: true"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			Run(t, 1, func(s *Simulation) {
				s.tamper(test.group, test.kind, test.name, test.change)
				found := strings.Join(s.oracle.unserved(), "\n")
				if test.want == "" && found != "" || !strings.Contains(found, test.want) {
					t.Errorf("found %q, want %q", found, test.want)
				}
			})
		})
	}
}
