// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ReadyAfterAnnotation on a pod says how long its fake takes from being scheduled to being Ready, as a Go duration.
// With a long one the pod stays Pending for the whole of a test.
const ReadyAfterAnnotation = "hack.freehold.dev/ready-after"

//go:embed stages.yaml
var stagesTemplate string

// stages returns the life of fake nodes and pods in the form that kwok reads.
func stages(podReadyDelay time.Duration) string {
	return strings.NewReplacer(
		"@POD_READY_DELAY_MS@", strconv.FormatInt(podReadyDelay.Milliseconds(), 10),
		"@READY_AFTER_ANNOTATION@", ReadyAfterAnnotation,
	).Replace(stagesTemplate)
}

// createFakeNodes makes sure that the given number of nodes exist. kwok fills their status.
func createFakeNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	for i := range count {
		name := fmt.Sprintf("fake-%d", i+1)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{managedByKwok: "fake"},
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: runtime.GOARCH,
				"type":                 "kwok",
			},
		}}
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating node %s: %w", name, err)
		}
	}
	return nil
}

// countReadyNodes returns the number of nodes, real or fake, that are Ready.
func countReadyNodes(ctx context.Context, client kubernetes.Interface) (int, error) {
	// Without the latest state from etcd, resourceVersion 0, the answer comes from the watch cache: cheap to poll.
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return 0, fmt.Errorf("listing nodes: %w", err)
	}
	ready := 0
	for i := range nodes.Items {
		for _, condition := range nodes.Items[i].Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	return ready, nil
}
