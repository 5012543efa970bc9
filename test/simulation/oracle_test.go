// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// proxyWith returns a Deployment as the parts make it.
func proxyWith(parts ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "d", ResourceVersion: "7", Labels: map[string]string{"team": "shop"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "toolhive", Image: "example.com/a"}}}},
		},
	}
	for _, part := range parts {
		part(d)
	}
	return d
}

const (
	teamLabel = `{"f:metadata":{"f:labels":{"f:team":{}}}}`
	replicas  = `{"f:spec":{"f:replicas":{}}}`
)

func ownedBy(manager, fields string) func(*appsv1.Deployment) {
	operation := metav1.ManagedFieldsOperationUpdate
	if strings.HasPrefix(manager, "freehold-") {
		operation = metav1.ManagedFieldsOperationApply
	}
	return func(d *appsv1.Deployment) {
		d.ManagedFields = append(d.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		})
	}
}

func numbered(replicas int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas }
}

func ofTeam(team string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Labels["team"] = team }
}

func madeFrom(generation int64) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{v1beta1.AnnotationSource: apply.Source{UID: "s", Generation: generation}.String()}
	}
}

func dying(d *appsv1.Deployment) { d.DeletionTimestamp = new(metav1.Now()) }

func TestTheOracleFindsEachRequestThatMustNotBe(t *testing.T) {
	const (
		swap  = `{"metadata":{"uid":"d","resourceVersion":"7"}}`
		edits = `[{"op":"test","path":"/metadata/uid","value":"d"},{"op":"replace","path":"/metadata/resourceVersion","value":"7"},
			{"op":"add","path":"/metadata/managedFields","value":[]}]`
	)
	tests := map[string]struct {
		request  apiserver.Request
		old, obj *appsv1.Deployment
		stdio    bool
		// client is operator-0 where it is empty.
		client string
		// wrong is a part of what is said; empty if the request is all right.
		wrong string
	}{
		"an apply": {
			request: apiserver.Request{Verb: "apply", Manager: managers.Proxy, Body: []byte(swap)},
			old:     proxyWith(ownedBy("tool", teamLabel), madeFrom(2)), obj: proxyWith(ownedBy("tool", teamLabel), madeFrom(2), numbered(2)),
		},
		"an apply to an object of others": {
			request: apiserver.Request{Verb: "apply", Manager: managers.Proxy, Body: []byte(swap)},
			old:     proxyWith(), obj: proxyWith(numbered(2)), wrong: "an apply to what is no MCPServer's",
		},
		"a forced apply": {
			request: apiserver.Request{Verb: "apply", Manager: managers.Proxy, Body: []byte(swap), Force: true},
			old:     proxyWith(), obj: proxyWith(), wrong: "a forced apply",
		},
		"an apply without a precondition": {
			request: apiserver.Request{Verb: "apply", Manager: managers.Proxy, Body: []byte(`{"metadata":{}}`)},
			old:     proxyWith(), obj: proxyWith(), wrong: "without a precondition",
		},
		"an apply to what is being deleted": {
			request: apiserver.Request{Verb: "apply", Manager: managers.Proxy, Body: []byte(swap)},
			old:     proxyWith(dying), obj: proxyWith(dying), wrong: "being deleted",
		},
		"an apply that changes a value of another manager": {
			request: apiserver.Request{Verb: "apply", Manager: managers.Proxy, Body: []byte(swap)},
			old:     proxyWith(ownedBy("tool", teamLabel)), obj: proxyWith(ofTeam("other")), wrong: "values of others were changed: .metadata.labels.team",
		},
		"an apply from a later generation": {
			request: apiserver.Request{Verb: "apply", Manager: managers.Proxy, Body: []byte(swap)},
			old:     proxyWith(madeFrom(2)), obj: proxyWith(madeFrom(3)),
		},
		"an apply from an earlier generation": {
			request: apiserver.Request{Verb: "apply", Manager: managers.Proxy, Body: []byte(swap)},
			old:     proxyWith(madeFrom(3)), obj: proxyWith(madeFrom(2)), wrong: "generation 3 was replaced by 2",
		},
		"an apply over a generation that the MCPServer has not reached": {
			request: apiserver.Request{Verb: "apply", Manager: managers.Proxy, Body: []byte(swap)},
			old:     proxyWith(madeFrom(4)), obj: proxyWith(madeFrom(2)),
		},
		"a number of pods that another manager has set": {
			request: apiserver.Request{Verb: "apply", Manager: managers.Proxy, Body: []byte(swap)},
			old:     proxyWith(numbered(3), ownedBy("scaler", replicas)), obj: proxyWith(), wrong: "values of others were changed: .spec.replicas",
		},
		"a number of pods, with transport stdio": {
			request: apiserver.Request{Verb: "apply", Manager: managers.Proxy, Body: []byte(swap)},
			old:     proxyWith(numbered(3), ownedBy("scaler", replicas), madeFrom(2)), obj: proxyWith(madeFrom(2)), stdio: true,
		},
		"no pod, with transport stdio": {
			request: apiserver.Request{Verb: "apply", Manager: managers.Proxy, Body: []byte(swap)},
			old:     proxyWith(numbered(0), ownedBy("scaler", replicas)), obj: proxyWith(), stdio: true,
			wrong: "values of others were changed: .spec.replicas",
		},
		"an edit of managedFields": {
			request: apiserver.Request{Verb: "patch", Manager: managers.Ownership, Body: []byte(edits)},
			old:     proxyWith(ownedBy("freehold-proxy", teamLabel)), obj: proxyWith(),
		},
		"an edit of managedFields that is not guarded": {
			request: apiserver.Request{Verb: "patch", Manager: managers.Ownership, Body: []byte(`[{"op":"test","path":"/metadata/uid","value":"d"}]`)},
			old:     proxyWith(ownedBy("freehold-proxy", teamLabel)), obj: proxyWith(), wrong: "without a resourceVersion",
		},
		"an edit of managedFields that changes a value": {
			request: apiserver.Request{Verb: "patch", Manager: managers.Ownership, Body: []byte(edits)},
			old:     proxyWith(), obj: proxyWith(numbered(2)), wrong: "changed something else",
		},
		"an edit of managedFields that takes from another manager": {
			request: apiserver.Request{Verb: "patch", Manager: managers.Ownership, Body: []byte(edits)},
			old:     proxyWith(ownedBy("tool", teamLabel)), obj: proxyWith(ownedBy("freehold-proxy", teamLabel)),
			wrong: "fields were taken from tool: .metadata.labels.team",
		},
		"an edit of managedFields that gives to another manager": {
			request: apiserver.Request{Verb: "patch", Manager: managers.Ownership, Body: []byte(edits)},
			old:     proxyWith(ownedBy("freehold-proxy", teamLabel)), obj: proxyWith(ownedBy("tool", teamLabel)),
			wrong: "fields were given to tool: .metadata.labels.team",
		},
		"an edit of managedFields that takes from the manager of a copy": {
			request: apiserver.Request{Verb: "patch", Manager: managers.Ownership, Body: []byte(edits)},
			old:     proxyWith(ownedBy("tool", `{"f:metadata":{"f:annotations":{"f:`+v1beta1.AnnotationSource+`":{}}}}`)), obj: proxyWith(),
		},
		"an edit of the managedFields of an object without owners": {
			request: apiserver.Request{Verb: "patch", Manager: managers.Ownership, Body: []byte(edits)},
			old:     proxyWith(), obj: proxyWith(ownedBy(ownership.BeforeFirstApply, teamLabel)),
		},
		"an edit by which the plugin gathers what is Freehold's": {
			client: "plugin-0", request: apiserver.Request{Verb: "patch", Manager: managers.Plugin, Body: []byte(edits)},
			old: proxyWith(ownedBy("freehold-proxy", teamLabel)), obj: proxyWith(ownedBy(managers.Plugin, teamLabel)),
		},
		"an edit by which the plugin passes it on": {
			client: "plugin-0", request: apiserver.Request{Verb: "patch", Manager: managers.Plugin, Body: []byte(edits)},
			old: proxyWith(ownedBy(managers.Plugin, teamLabel)), obj: proxyWith(ownedBy(managers.ToolHiveOperator, teamLabel)),
		},
		"an edit by which the plugin takes from another manager": {
			client: "plugin-0", request: apiserver.Request{Verb: "patch", Manager: managers.Plugin, Body: []byte(edits)},
			old: proxyWith(ownedBy("tool", teamLabel)), obj: proxyWith(ownedBy(managers.Plugin, teamLabel)),
			wrong: "fields were taken from tool: .metadata.labels.team",
		},
		"a patch of the plugin that is not guarded": {
			client: "plugin-0", request: apiserver.Request{Verb: "patch", Manager: managers.Plugin, Body: []byte(`[]`)},
			old: proxyWith(), obj: proxyWith(), wrong: "without a resourceVersion",
		},
		"a forced apply of the plugin": {
			client: "plugin-0", request: apiserver.Request{Verb: "apply", Manager: managers.Plugin, Body: []byte(swap), Force: true},
			old: proxyWith(), obj: proxyWith(), wrong: "a forced apply",
		},
		"an apply of the plugin that changes a value of another manager": {
			client: "plugin-0", request: apiserver.Request{Verb: "apply", Manager: managers.Plugin, Body: []byte(swap)},
			old: proxyWith(ownedBy("tool", teamLabel)), obj: proxyWith(ofTeam("other")), wrong: "values of others were changed",
		},
		"an apply of the plugin under the name of an operator's writer": {
			client: "plugin-0", request: apiserver.Request{Verb: "apply", Manager: managers.Proxy, Body: []byte(swap)},
			old: proxyWith(), obj: proxyWith(), wrong: "under another name",
		},
		"what another client does": {
			client: "tool", request: apiserver.Request{Verb: "apply", Manager: "tool", Force: true}, old: proxyWith(), obj: proxyWith(),
		},
		"an update": {
			request: apiserver.Request{Verb: "update", Manager: managers.Proxy, Body: []byte(swap)},
			old:     proxyWith(), obj: proxyWith(), wrong: "no write is made that way",
		},
		"a patch that is no edit of managedFields": {
			request: apiserver.Request{Verb: "patch", Manager: managers.Proxy, Body: []byte(edits)},
			old:     proxyWith(), obj: proxyWith(), wrong: "another manager",
		},
		"a deletion without preconditions": {
			request: apiserver.Request{Verb: "delete", Body: []byte(`{}`)}, old: proxyWith(), wrong: "without preconditions",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			Run(t, 1, func(s *Simulation) {
				s.oracle.generations["s"] = 3
				s.oracle.stdio["web"] = test.stdio
				r, event := test.request, watch.Modified
				r.Client, r.Kind = cmp.Or(test.client, "operator-0"), s.Server.KindOf("apps", "Deployment")
				obj := test.obj
				if obj == nil {
					event, obj = watch.Deleted, test.old
				}
				s.oracle.committed(&r, event, obj, test.old)
				found := fmt.Sprint(s.oracle.violations)
				switch {
				case test.wrong == "" && len(s.oracle.violations) > 0:
					t.Errorf("it is said to be wrong: %s", found)
				case !strings.Contains(found, test.wrong):
					t.Errorf("%q is not said; %s is", test.wrong, found)
				}
			})
		})
	}
}

// TestOracleCountsReplacements: pods and workloads that an operator deletes count, whichever controller creates them again.
func TestOracleCountsReplacements(t *testing.T) {
	const guarded = `{"preconditions":{"uid":"u","resourceVersion":"7"}}`
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "shop", OwnerReferences: []metav1.OwnerReference{
			{Kind: "StatefulSet", Name: "web", UID: "b", Controller: new(true)},
		}},
	}
	server := object("MCPServer", "web", fields{})
	server.SetNamespace("shop")
	server.SetUID("s")
	tests := map[string]struct {
		client, group, kind string
		// stays is set where there is an MCPServer.
		stays bool
		obj   runtime.Object
		want  map[string]int
	}{
		"a pod that an operator deletes":          {"operator-0", "", "Pod", true, pod, map[string]int{"pods of StatefulSet/web": 1}},
		"a pod that another client deletes":       {"kubectl-drain", "", "Pod", true, pod, map[string]int{}},
		"a workload that an operator deletes":     {"operator-0", "apps", "Deployment", true, proxyWith(), map[string]int{"deletion of Deployment/web": 1}},
		"a workload that is collected":            {collector, "apps", "Deployment", true, proxyWith(), map[string]int{"deletion of Deployment/web": 1}},
		"a workload that goes with its MCPServer": {collector, "apps", "Deployment", false, proxyWith(), map[string]int{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			Run(t, 1, func(s *Simulation) {
				if test.stays {
					s.oracle.live["s"] = server
				}
				r := &apiserver.Request{Client: test.client, Verb: "delete", Kind: s.Server.KindOf(test.group, test.kind), Body: []byte(guarded)}
				s.oracle.committed(r, watch.Deleted, test.obj, test.obj)
				if diff := gocmp.Diff(test.want, s.oracle.rolls); diff != "" {
					t.Errorf("counted otherwise (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestOracleFindsRetries: writes that change nothing are few in calm, whatever the answer, and a refused one hardly happens after that.
func TestOracleFindsRetries(t *testing.T) {
	const write = "operator-0: apply apps/deployments shop/web freehold-proxy"
	tests := map[string]struct {
		served             map[answered]int
		repeated, insisted bool
	}{
		"a write that pauses longer and longer": {map[answered]int{{write, 503}: mostRefused}, false, true},
		"a loop of refused writes":              {map[answered]int{{write, 422}: mostRefused + 1}, true, true},
		"a loop of accepted writes":             {map[answered]int{{write, 200}: mostRefused + 1}, true, false},
		"a loop of both":                        {map[answered]int{{write, 200}: mostRefused, {write, 503}: 1}, true, false},
		"two of the longest pauses":             {map[answered]int{{write, 503}: mostRetries}, false, false},
		"a conflict that is tried again":        {map[answered]int{{write, 409}: 1}, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if found := repeated(test.served, 1); (len(found) > 0) != test.repeated {
				t.Errorf("repeated: %q", found)
			}
			if found := insisted(test.served, 1); (len(found) > 0) != test.insisted {
				t.Errorf("insisted on: %q", found)
			}
		})
	}
}

// TestOracleFindsConfigs: a proxy needs each ConfigMap of Freehold's that it names, when it is written and as long as it or an earlier
// revision names it.
func TestOracleFindsConfigs(t *testing.T) {
	server := object("MCPServer", "web", fields{})
	server.SetNamespace("shop")
	server.SetUID("s")
	for name, found := range map[string]bool{
		"web-runconfig-0123456789abcdef": true, "web-authz-inline-0123456789abcdef": true, "authz-of-the-user": false,
	} {
		t.Run(name, func(t *testing.T) {
			reads := func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
				}}}
			}
			config := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}}
			Run(t, 1, func(s *Simulation) {
				proxies, configs := s.Server.KindOf("apps", "Deployment"), s.Server.KindOf("", "ConfigMap")
				s.oracle.checkDependencies(&apiserver.Request{Kind: proxies}, proxyWith(reads))
				if len(s.oracle.violations) > 0 {
					t.Errorf("when it is missing, and there is no MCPServer: %v", s.oracle.violations)
				}
				s.oracle.live[server.GetUID()] = server
				s.oracle.checkDependencies(&apiserver.Request{Kind: proxies}, proxyWith(reads))
				if got := len(s.oracle.violations) > 0; got != found {
					t.Errorf("when it is missing: %v", s.oracle.violations)
				}
				for _, step := range []struct {
					what string
					live []runtime.Object
					want bool
				}{
					{"its MCPServer is gone", []runtime.Object{proxyWith(reads)}, false},
					{"the proxy is there", []runtime.Object{server, proxyWith(reads)}, found},
					{"the proxy is going", []runtime.Object{server, proxyWith(reads, dying)}, false},
					{"the proxy reads another one", []runtime.Object{server, proxyWith()}, false},
				} {
					s.oracle.violations, s.oracle.live = nil, map[types.UID]runtime.Object{}
					for _, obj := range step.live {
						s.oracle.live[access(obj).GetUID()] = obj
					}
					s.oracle.checkDependents(&apiserver.Request{Kind: configs}, config)
					if got := len(s.oracle.violations) > 0; got != step.want {
						t.Errorf("deleted while %s: %v", step.what, s.oracle.violations)
					}
				}
			})
		})
	}
}
