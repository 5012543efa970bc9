// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/hack/cluster"
)

// operators selects the Deployments of deploy/, those of shards included.
const operators = "app.kubernetes.io/name=freehold,app.kubernetes.io/part-of=freehold"

// refuseBesideFreehold returns an error where Freehold is installed: its operator and that of make run would both write for the
// samples, under the same field managers and with different settings.
func refuseBesideFreehold(ctx context.Context, core kubernetes.Interface) error {
	found, err := core.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: operators, Limit: 1})
	if err != nil {
		return fmt.Errorf("cannot see whether Freehold is installed in this cluster: %w", err)
	}
	if len(found.Items) == 0 {
		return nil
	}
	return fmt.Errorf("this operator cannot run beside Freehold, which is installed in this cluster as Deployment %s/%s: "+
		"unset KUBECONFIG to start a control plane here, or let that operator run the samples with "+
		"kubectl apply --server-side -k deploy/samples", found.Items[0].Namespace, found.Items[0].Name)
}

// removeSamples deletes the samples from a cluster that stays. The operator is still running then, so that it releases
// them.
func removeSamples(c *cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpTimeout)
	defer cancel()
	core, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	servers, err := versioned.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	if err := deleteServers(ctx, servers); err != nil {
		return fmt.Errorf("the samples stay in namespace %s: %w", samplesNamespace, err)
	}
	if err := core.CoreV1().Namespaces().Delete(ctx, samplesNamespace, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}
