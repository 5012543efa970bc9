// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// foreignSize is how much data a foreign ConfigMap or Secret holds, in bytes: about as much as the ConfigMap with the
// cluster's certificate authority that Kubernetes puts into every namespace.
const foreignSize = 1 << 10

// foreign is what objects that belong to no MCPServer cost the operator when it starts.
type foreign struct {
	// Objects is their number; 0 when that was not measured.
	Objects int
	// Restarts beside them.
	Restarts []stage
}

// foreignKinds are the kinds of foreign objects, in the shares in which they are made. All are kinds of children, but
// for Secrets: the operator is not to read those at all.
var foreignKinds = []struct {
	share int
	make  func(ctx context.Context, s *site, meta metav1.ObjectMeta) error
}{
	{80, makeForeignConfigMap},
	{5, makeForeignDeployment},
	{5, makeForeignService},
	{5, makeForeignServiceAccount},
	{5, makeForeignSecret},
}

// makeForeign makes objects as other software in the cluster would, in a namespace of their own, and returns when the
// control plane has done with them.
func (s *site) makeForeign(ctx context.Context, count int) error {
	const namespace = "foreign"
	if err := s.makeNamespace(ctx, namespace); err != nil {
		return err
	}
	err := each(ctx, count, func(ctx context.Context, i int) error {
		return foreignMaker(i)(ctx, s, metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("foreign-%06d", i),
			Labels: map[string]string{"app.kubernetes.io/name": "foreign", "app.kubernetes.io/managed-by": "bench"},
		})
	})
	if err != nil {
		return fmt.Errorf("cannot make foreign objects: %w", err)
	}
	// Deployments get ReplicaSets and a status. The other kinds are left alone.
	return wait.PollUntilContextCancel(ctx, foreignPoll, true, func(ctx context.Context) (bool, error) {
		list, err := s.core.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if list.Items[i].Status.ObservedGeneration < list.Items[i].Generation {
				return false, nil
			}
		}
		return true, nil
	})
}

// foreignPoll is how often all foreign Deployments are listed.
const foreignPoll = 10 * pollInterval

// foreignMaker returns what makes the foreign object of a number, so that any hundred in a row have the shares of
// foreignKinds.
func foreignMaker(i int) func(ctx context.Context, s *site, meta metav1.ObjectMeta) error {
	at := i % 100
	for _, kind := range foreignKinds {
		if at < kind.share {
			return kind.make
		}
		at -= kind.share
	}
	panic("the shares of foreign kinds are less than 100")
}

func makeForeignConfigMap(ctx context.Context, s *site, meta metav1.ObjectMeta) error {
	object := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"content": strings.Repeat("x", foreignSize)}}
	_, err := s.core.CoreV1().ConfigMaps(meta.Namespace).Create(ctx, object, metav1.CreateOptions{})
	return err
}

// makeForeignDeployment makes one without pods, which would only be more work for the control plane.
func makeForeignDeployment(ctx context.Context, s *site, meta metav1.ObjectMeta) error {
	labels := map[string]string{"app": meta.Name}
	object := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32),
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/foreign:1"}}},
		},
	}}
	_, err := s.core.AppsV1().Deployments(meta.Namespace).Create(ctx, object, metav1.CreateOptions{})
	return err
}

// makeForeignService makes one without an address, of which a cluster has only so many.
func makeForeignService(ctx context.Context, s *site, meta metav1.ObjectMeta) error {
	object := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80}},
	}}
	_, err := s.core.CoreV1().Services(meta.Namespace).Create(ctx, object, metav1.CreateOptions{})
	return err
}

func makeForeignServiceAccount(ctx context.Context, s *site, meta metav1.ObjectMeta) error {
	object := &corev1.ServiceAccount{ObjectMeta: meta}
	_, err := s.core.CoreV1().ServiceAccounts(meta.Namespace).Create(ctx, object, metav1.CreateOptions{})
	return err
}

func makeForeignSecret(ctx context.Context, s *site, meta metav1.ObjectMeta) error {
	object := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"content": []byte(strings.Repeat("x", foreignSize))}}
	_, err := s.core.CoreV1().Secrets(meta.Namespace).Create(ctx, object, metav1.CreateOptions{})
	return err
}
