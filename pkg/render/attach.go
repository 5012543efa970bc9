// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// AnnotationAttachedTo on the pod template of a proxy with transport stdio names the process that its runner talks to.
//
// The runner is attached to the input and output of one process, and does not get over its end: the attempts that it
// makes while the pod is replaced leave readers behind, each of which swallows one message of a client; and when it
// sees the StatefulSet without a ready pod at its first look it gives up for good, with its own pod Ready. A rollout of
// the proxy whenever the process is another one gives it a new runner.
const AnnotationAttachedTo = "freehold.dev/attached-to"

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
