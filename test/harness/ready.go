// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// ready tells what is missing until an MCPServer is Ready at its present generation.
func ready(server *v1beta1.MCPServer) error {
	if server.Status.ObservedGeneration != server.Generation {
		return fmt.Errorf("MCPServer %s: generation %d is not in the status, only %d",
			server.Name, server.Generation, server.Status.ObservedGeneration)
	}
	if !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionReady) {
		said := []string{fmt.Sprintf("MCPServer %s is %s: %s", server.Name, server.Status.Phase, server.Status.Message)}
		for _, c := range server.Status.Conditions {
			if slices.Contains([]string{v1beta1.ConditionReady, v1beta1.ConditionReconciling, v1beta1.ConditionStalled}, c.Type) {
				said = append(said, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
			}
		}
		return errors.New(strings.Join(said, "; "))
	}
	return nil
}

// AwaitReady waits until an MCPServer is Ready at its present generation.
func (ns *Namespace) AwaitReady(t *testing.T, name string) *v1beta1.MCPServer {
	t.Helper()
	return ns.AwaitServer(t, name, "is Ready", ready)
}

// AwaitServer waits until an MCPServer is as the check wants it.
func (ns *Namespace) AwaitServer(
	t *testing.T, name, what string, check func(*v1beta1.MCPServer) error,
) (server *v1beta1.MCPServer) {
	t.Helper()
	Eventually(t, "MCPServer "+name+" "+what, func(ctx context.Context) (err error) {
		if server, err = ns.Servers.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return check(server)
	})
	return server
}

// AwaitSettled waits until an MCPServer is Ready and nothing is under way any more that could change its status:
// rollouts are over, and the status knows of all proxy pods.
func (ns *Namespace) AwaitSettled(t *testing.T, name string) *v1beta1.MCPServer {
	t.Helper()
	return ns.AwaitServer(t, name, "has settled", func(server *v1beta1.MCPServer) error {
		deployment, err := ns.Core.AppsV1().Deployments(ns.Name).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		statefulSet, err := ns.Core.AppsV1().StatefulSets(ns.Name).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := settled(server, deployment, statefulSet); err != nil || server.Spec.Transport != v1beta1.TransportStdio {
			return err
		}
		return ns.attached(t.Context(), deployment)
	})
}

// AwaitWorkloads waits until the pods of both workloads are as these ask for, whatever becomes of the MCPServer. One that
// does not exist has none.
func (ns *Namespace) AwaitWorkloads(t *testing.T, name string) {
	t.Helper()
	Eventually(t, "the workloads of MCPServer "+name+" have settled", func(ctx context.Context) error {
		deployment, err := ns.Core.AppsV1().Deployments(ns.Name).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			err = settledDeployment(name, deployment)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		statefulSet, err := ns.Core.AppsV1().StatefulSets(ns.Name).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			err = settledStatefulSet(name, statefulSet)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
}

// attached tells whether the proxy of an MCPServer with transport stdio was made for the pod that its backend has. Where
// it has none nothing is to be waited for.
func (ns *Namespace) attached(ctx context.Context, deployment *appsv1.Deployment) error {
	pod, err := ns.Core.CoreV1().Pods(ns.Name).Get(ctx, render.OnlyBackendPod(deployment.Name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	to := deployment.Spec.Template.Annotations[v1beta1.AnnotationAttachedTo]
	if process := render.ProcessOf(workload.PodOf(pod)); to != process {
		return fmt.Errorf("the proxy of MCPServer %s is attached to %q, and its backend is %q", deployment.Name, to, process)
	}
	return nil
}

// AwaitAllSettled waits for a number of MCPServers, which may take its time.
func (ns *Namespace) AwaitAllSettled(t *testing.T, count int, timeout time.Duration) {
	t.Helper()
	ctx, cancel := WithinPace(t.Context(), timeout)
	defer cancel()
	eventually(ctx, t, fmt.Sprintf("%d MCPServers have settled", count), longestPoll, func(ctx context.Context) error {
		servers, err := ns.Servers.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		deployments, err := ns.Core.AppsV1().Deployments(ns.Name).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		statefulSets, err := ns.Core.AppsV1().StatefulSets(ns.Name).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		if len(servers.Items) != count {
			return fmt.Errorf("there are %d MCPServers", len(servers.Items))
		}
		deploymentOf, statefulSetOf := map[string]*appsv1.Deployment{}, map[string]*appsv1.StatefulSet{}
		for i := range deployments.Items {
			deploymentOf[deployments.Items[i].Name] = &deployments.Items[i]
		}
		for i := range statefulSets.Items {
			statefulSetOf[statefulSets.Items[i].Name] = &statefulSets.Items[i]
		}
		var missing []error
		for i := range servers.Items {
			server := &servers.Items[i]
			if err := settled(server, deploymentOf[server.Name], statefulSetOf[server.Name]); err != nil {
				missing = append(missing, err)
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("%d have not; for example: %w", len(missing), missing[0])
		}
		return nil
	})
}

func settled(server *v1beta1.MCPServer, deployment *appsv1.Deployment, statefulSet *appsv1.StatefulSet) error {
	if err := ready(server); err != nil {
		return err
	}
	if deployment == nil || statefulSet == nil {
		return fmt.Errorf("MCPServer %s has not both its workloads", server.Name)
	}
	if err := settledDeployment(server.Name, deployment); err != nil {
		return err
	}
	if err := settledStatefulSet(server.Name, statefulSet); err != nil {
		return err
	}
	if replicas := deployment.Status.Replicas; server.Status.ReadyReplicas != replicas {
		return fmt.Errorf("MCPServer %s tells of %d proxies, there are %d", server.Name, server.Status.ReadyReplicas, replicas)
	}
	return nil
}

func settledDeployment(server string, deployment *appsv1.Deployment) error {
	d, wanted := deployment.Status, *deployment.Spec.Replicas
	if d.ObservedGeneration != deployment.Generation || d.UpdatedReplicas != wanted || d.Replicas != wanted ||
		d.AvailableReplicas != wanted || d.TerminatingReplicas != nil && *d.TerminatingReplicas > 0 {
		return fmt.Errorf("the Deployment of MCPServer %s is on its way to %d pods: %+v", server, wanted, d)
	}
	return nil
}

func settledStatefulSet(server string, statefulSet *appsv1.StatefulSet) error {
	b, wanted := statefulSet.Status, *statefulSet.Spec.Replicas
	if b.ObservedGeneration != statefulSet.Generation || b.CurrentRevision != b.UpdateRevision || b.Replicas != wanted ||
		b.ReadyReplicas != wanted || b.AvailableReplicas != wanted {
		return fmt.Errorf("the StatefulSet of MCPServer %s is on its way to %d pods: %+v", server, wanted, b)
	}
	return nil
}
