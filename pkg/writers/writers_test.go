// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	versionedfake "github.com/freehold-dev/freehold/generated/clientset/versioned/fake"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// Every registered manager has a writer, and every kind of child a way to be read and deleted.
func TestEveryManagerHasAWriter(t *testing.T) {
	registry := managers.Registry()
	clients, err := writers.Connect(registry, &kubefake.Clientset{}, &versionedfake.Clientset{}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	for _, manager := range registry.Writers() {
		w, ok := clients.Writers[writers.Key{Manager: manager.Name, Kind: manager.Kind}]
		if manager.Name == managers.Ownership {
			if ok {
				t.Errorf("%s writes %s, and claims nothing", manager.Name, manager.Kind)
			}
			continue
		}
		if !ok || w.Name() != manager.Name {
			t.Errorf("%s has no writer for %s", manager.Name, manager.Kind)
		}
	}
	for _, kind := range inventory.Kinds() {
		if of := clients.Objects[kind]; of.Get == nil || of.Delete == nil {
			t.Errorf("there is no way to read or delete a %s", kind)
		}
	}

	registry.MustRegister(fieldmanager.Writer{Name: "stranger", Kind: managers.ConfigMap, Object: "other"})
	if _, err := writers.Connect(registry, &kubefake.Clientset{}, &versionedfake.Clientset{}, clock.RealClock{}); err != nil {
		t.Errorf("a further manager of a kind that has a client: %v", err)
	}
	unknown := managers.ConfigMap
	unknown.Kind = "Secret"
	registry.MustRegister(fieldmanager.Writer{Name: "stranger", Kind: unknown})
	if _, err := writers.Connect(registry, &kubefake.Clientset{}, &versionedfake.Clientset{}, clock.RealClock{}); err == nil || !strings.Contains(err.Error(), `"stranger" has no client for Secret`) {
		t.Errorf("error %v, want one about a manager without a client", err)
	}
}

// What refers to other objects is the content: of a workload, the number of replicas tells of its source alone.
func TestOnlyContentRecordsReferences(t *testing.T) {
	planners, err := writers.Planners()
	if err != nil {
		t.Fatal(err)
	}
	number := appsv1ac.Deployment("web", "tools").WithSpec(appsv1ac.DeploymentSpec().WithReplicas(1))
	const source, references = "server/1", "mcpoidcconfig/idp=idp/1@2"
	for manager, test := range map[string]struct {
		config runtime.ApplyConfiguration
		want   map[string]string
	}{
		managers.RunConfig: {
			corev1ac.ConfigMap("web", "tools").WithData(map[string]string{"a": "b"}),
			map[string]string{v1beta1.AnnotationSource: source, v1beta1.AnnotationReferences: references},
		},
		managers.Proxy:         {number, map[string]string{v1beta1.AnnotationSource: source, v1beta1.AnnotationReferences: references}},
		managers.ProxyReplicas: {number, map[string]string{v1beta1.AnnotationReplicasSource: source, v1beta1.AnnotationReplicasWritten: "1"}},
	} {
		kind := managers.Deployment
		if manager == managers.RunConfig {
			kind = managers.ConfigMap
		}
		planned, err := apply.Plan(planners[writers.Key{Manager: manager, Kind: kind}], apply.Request{
			Object: apply.NewObjectRef(kind, "tools", "web"), Config: test.config,
			Source: apply.Source{UID: "server", Generation: 1, References: apply.References{
				{Name: "mcpoidcconfig/idp", UID: "idp", Generation: 1, ResourceVersion: "2"},
			}},
		})
		if err != nil || planned.Err != nil {
			t.Fatal(err, planned.Err)
		}
		if diff := cmp.Diff(test.want, planned.After.GetAnnotations()); diff != "" {
			t.Errorf("annotations of %s (-want +got):\n%s", manager, diff)
		}
	}
}

// Planners are writers of the same managers; they need no cluster.
func TestPlannersNeedNoCluster(t *testing.T) {
	planners, err := writers.Planners()
	if err != nil {
		t.Fatal(err)
	}
	clients, err := writers.Connect(managers.Registry(), &kubefake.Clientset{}, &versionedfake.Clientset{}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	for key := range clients.Writers {
		if planners[key] == nil || planners[key].Name() != key.Manager {
			t.Errorf("%s of %s has no planner", key.Manager, key.Kind)
		}
	}
}
