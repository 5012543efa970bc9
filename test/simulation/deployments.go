// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// tendDeployment moves the pods from one ReplicaSet to the next, without an interruption.
func (w *workloads) tendDeployment(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) {
	if d.DeletionTimestamp != nil {
		return
	}
	revision := w.revisions[&d.Spec.Template]
	name := d.Name + "-" + revision
	var current *appsv1.ReplicaSet
	var others []*appsv1.ReplicaSet
	for _, set := range sets {
		if set.Name == name {
			current = set
		} else {
			others = append(others, set)
		}
	}
	want, number := *d.Spec.Replicas, 1
	for _, set := range others {
		number = max(number, numberOf(set)+1)
	}
	if current == nil {
		if _, taken := w.server.Get(w.replicaSets, d.Namespace, name); taken {
			w.unsure = true
			return // It is that of an earlier Deployment, and goes soon.
		}
		w.add(func() error {
			made := replicaSetOf(d, name, revision)
			made.Annotations = map[string]string{revisionAnnotation: strconv.Itoa(number)}
			return w.server.Create(w.replicaSets, made, controllerManager)
		},
			"%s creates ReplicaSet %s", controllerManager, name)
		return
	}
	if number > numberOf(current) { // The Deployment is back at an earlier template.
		w.edit(w.replicaSets, current, "", controllerManager, func(obj runtime.Object) {
			metav1.SetMetaDataAnnotation(&obj.(*appsv1.ReplicaSet).ObjectMeta, revisionAnnotation, strconv.Itoa(number))
		})
		return
	}
	scale := func(set *appsv1.ReplicaSet, replicas int32) {
		if *set.Spec.Replicas != replicas {
			w.edit(w.replicaSets, set, "", controllerManager, func(obj runtime.Object) { obj.(*appsv1.ReplicaSet).Spec.Replicas = &replicas })
		}
	}
	scale(current, want)
	next := appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, UpdatedReplicas: current.Status.Replicas, Conditions: slices.Clone(d.Status.Conditions),
		CollisionCount: d.Status.CollisionCount, TerminatingReplicas: new(int32),
	}
	for _, set := range sets {
		if terminating := set.Status.TerminatingReplicas; terminating != nil {
			*next.TerminatingReplicas += *terminating
		}
		next.Replicas += set.Status.Replicas
		next.ReadyReplicas += set.Status.ReadyReplicas
		next.AvailableReplicas += set.Status.AvailableReplicas
	}
	for _, set := range others {
		if current.Status.ReadyReplicas >= want || d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
			scale(set, 0)
		}
	}
	next.UnavailableReplicas = max(0, next.Replicas-next.AvailableReplicas)
	done := next.UpdatedReplicas == want && next.Replicas == want && next.AvailableReplicas == want
	next.Conditions = conditionsOf(d.Status.Conditions, name, next.AvailableReplicas >= want, done)
	ofCurrent := current.Annotations[revisionAnnotation]
	now, after := []any{d.Status, d.Annotations[revisionAnnotation]}, []any{next, ofCurrent}
	w.report(w.deployments, d, now, after, func(obj runtime.Object) {
		deployment := obj.(*appsv1.Deployment)
		deployment.Status = next
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, revisionAnnotation, ofCurrent)
	})
}

// revisionAnnotation has the number of a ReplicaSet among those of its Deployment, and that of the present one on the Deployment.
const revisionAnnotation = "deployment.kubernetes.io/revision"

func numberOf(set *appsv1.ReplicaSet) (number int) {
	_, _ = fmt.Sscan(set.Annotations[revisionAnnotation], &number)
	return number
}

// conditionsOf returns the conditions of a Deployment, which name its present ReplicaSet.
func conditionsOf(before []appsv1.DeploymentCondition, replicaSet string, available, done bool) (conditions []appsv1.DeploymentCondition) {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	set := func(kind appsv1.DeploymentConditionType, is bool, reason, message string) {
		c := appsv1.DeploymentCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now}
		if is {
			c.Status = corev1.ConditionTrue
		}
		for _, old := range before {
			if old.Type == kind && old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
				c = old
			}
		}
		conditions = append(conditions, c)
	}
	if available {
		set(appsv1.DeploymentAvailable, true, "MinimumReplicasAvailable", "Deployment has minimum availability.")
	} else {
		set(appsv1.DeploymentAvailable, false, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
	}
	if done {
		set(appsv1.DeploymentProgressing, true, "NewReplicaSetAvailable", fmt.Sprintf("ReplicaSet %q has successfully progressed.", replicaSet))
	} else {
		set(appsv1.DeploymentProgressing, true, "ReplicaSetUpdated", fmt.Sprintf("ReplicaSet %q is progressing.", replicaSet))
	}
	return conditions
}

func replicaSetOf(d *appsv1.Deployment, name, revision string) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: d.Namespace, Labels: withLabel(d.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, revision),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), Selector: d.Spec.Selector.DeepCopy(), Template: *d.Spec.Template.DeepCopy()},
	}
	set.Spec.Selector.MatchLabels = withLabel(set.Spec.Selector.MatchLabels, appsv1.DefaultDeploymentUniqueLabelKey, revision)
	set.Spec.Template.Labels = set.Labels
	return set
}
