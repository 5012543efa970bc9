// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// ProcessOf names the process of the MCP server in a backend pod, by the pod's UID and how often the server was started
// again in it. It is empty when the pod is not there, not ready, or on its way out.
func ProcessOf(pod *corev1.Pod) string {
	if pod == nil || pod.DeletionTimestamp != nil {
		return ""
	}
	for i := range pod.Status.ContainerStatuses {
		if server := &pod.Status.ContainerStatuses[i]; server.Name == backendContainer && server.Ready {
			return fmt.Sprintf("%s/%d", pod.UID, server.RestartCount)
		}
	}
	return ""
}
