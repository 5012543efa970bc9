// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// byUser is the field manager of kubectl patch.
const byUser = "kubectl-patch"

// strategy is how the backend's pods are replaced.
type strategy struct {
	name string
	// begin has a user say so, in a StatefulSet that is at rest; nil for the default.
	begin func(*scene)
	// meet lets the first pod be of the newest revision, and returns its name.
	meet func(*scene) (pod string)
	// finish lets all others follow, when that one is ready.
	finish func(*scene)
	// repartition holds the rollout up while the first pod is being made, by a partition if there can be one, and lets
	// the rollout end in the end.
	repartition func(*scene)
	// onDelete is whether pods are replaced only when they are deleted.
	onDelete bool
}

var strategies = []strategy{rollingUpdate, partitioned, onDelete, driven}

var (
	rollingUpdate = strategy{
		name:   "RollingUpdate",
		meet:   func(*scene) string { return podOne },
		finish: func(*scene) {},
		repartition: func(s *scene) {
			s.updateStrategy(rolling(1))
			s.setBehaviour(harness.Backend, second, ready)
			s.rests(waitsFor(podZero, "Partition"))
			s.updateStrategy(rolling(0))
		},
	}
	partitioned = strategy{
		name:  "Partition",
		begin: func(s *scene) { s.updateStrategy(rolling(1)) },
		meet:  func(*scene) string { return podOne },
		finish: func(s *scene) {
			s.await(waitsFor(podZero, "Partition"))
			s.updateStrategy(rolling(0))
		},
		repartition: func(s *scene) {
			// Above all pods: those that have been replaced stay so.
			s.updateStrategy(rolling(5))
			s.setBehaviour(harness.Backend, second, ready)
			s.await(waitsFor(podZero, "Partition"))
			s.updateStrategy(rolling(0))
		},
	}
	onDelete = strategy{
		name:     "OnDelete",
		onDelete: true,
		begin: func(s *scene) {
			s.updateStrategy(map[string]any{"type": string(appsv1.OnDeleteStatefulSetStrategyType), "rollingUpdate": nil})
		},
		meet: func(s *scene) string {
			s.await(waitsFor(podZero, "OnDelete"))
			s.deletePod(podZero)
			return podZero
		},
		finish: func(s *scene) {
			s.await(waitsFor(podOne, "OnDelete"))
			s.deletePod(podOne)
		},
		repartition: func(s *scene) {
			// The user changes his mind, and has the rest rolled out, but not yet all of it.
			s.updateStrategy(rolling(2))
			s.setBehaviour(harness.Backend, second, ready)
			s.await(waitsFor(podOne, "Partition"))
			s.updateStrategy(rolling(0))
		},
	}
	driven = strategy{
		name:     "OnDelete by the operator",
		onDelete: true,
		begin: func(s *scene) {
			s.annotate(v1beta1.AnnotationBackendUpdateStrategy, string(appsv1.OnDeleteStatefulSetStrategyType))
			harness.Eventually(s.t, "the StatefulSet is updated OnDelete", func(ctx context.Context) error {
				set, err := s.Core.AppsV1().StatefulSets(s.Name).Get(ctx, name, metav1.GetOptions{})
				if err == nil && set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
					err = fmt.Errorf("it is updated %s", set.Spec.UpdateStrategy.Type)
				}
				return err
			})
		},
		meet:   func(*scene) string { return podOne },
		finish: func(*scene) {},
		repartition: func(s *scene) {
			// It has no partition, but can be paused.
			s.annotate(v1beta1.AnnotationBackendRollout, "paused")
			s.await(waitsFor(podZero, "Paused")) // Or the operator may see the pod ready before it sees that.
			s.setBehaviour(harness.Backend, second, ready)
			s.rests(waitsFor(podZero, "Paused"))
			s.annotate(v1beta1.AnnotationBackendRollout, "")
		},
	}
)

// annotate sets an annotation of the MCPServer, or takes it away if the value is empty.
func (s *scene) annotate(key, value string) {
	s.t.Helper()
	s.change(func(server *v1beta1.MCPServer) {
		delete(server.Annotations, key)
		if value != "" {
			metav1.SetMetaDataAnnotation(&server.ObjectMeta, key, value)
		}
	})
}

func rolling(partition int64) map[string]any {
	return map[string]any{
		"type": string(appsv1.RollingUpdateStatefulSetStrategyType), "rollingUpdate": map[string]any{"partition": partition},
	}
}

// updateStrategy has a user say how the backend's pods are replaced, and nothing else. It is no apply: that cannot take
// the API server's own default for rollingUpdate away, which is not allowed beside OnDelete.
func (s *scene) updateStrategy(to map[string]any) {
	s.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"updateStrategy": to}})
	if err != nil {
		s.t.Fatal(err)
	}
	options := metav1.PatchOptions{FieldManager: byUser}
	if _, err := s.Objects(harness.Backend).Patch(s.t.Context(), name, types.MergePatchType, patch, options); err != nil {
		s.t.Fatal(err)
	}
}

// checkRevisions looks at what the StatefulSet controller says when a rollout is complete, which is where versions of
// Kubernetes differ (https://issue.k8s.io/136833), and nowhere else.
func (s *scene) checkRevisions() {
	s.t.Helper()
	stays := s.strategy.onDelete && !s.site.since("v1.37")
	harness.Eventually(s.t, "the StatefulSet's status", func(ctx context.Context) error {
		set, err := s.Core.AppsV1().StatefulSets(s.Name).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType != s.strategy.onDelete {
			return fmt.Errorf("the user's update strategy has become %s", set.Spec.UpdateStrategy.Type)
		}
		if advanced := set.Status.CurrentRevision == set.Status.UpdateRevision; advanced == stays {
			return fmt.Errorf("with controllers %s status.currentRevision is %s and status.updateRevision %s",
				s.site.controllers, set.Status.CurrentRevision, set.Status.UpdateRevision)
		}
		pods, err := tierPods(ctx, s.Namespace, harness.Backend)
		if err != nil {
			return err
		}
		for i := range pods {
			if revisionOf(&pods[i]) != set.Status.UpdateRevision {
				return fmt.Errorf("pod %s is of revision %s, not %s", pods[i].Name, revisionOf(&pods[i]), set.Status.UpdateRevision)
			}
		}
		return nil
	})
}
