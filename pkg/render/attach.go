// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	"github.com/freehold-dev/freehold/pkg/workload"
)

// ProcessOf names the process of the MCP server in a backend pod, by the pod's UID and how often the server was started
// again in it. It is empty when the pod is not there, not ready, or on its way out.
func ProcessOf(pod *workload.Pod) string {
	if pod == nil || pod.DeletionTimestamp != nil {
		return ""
	}
	for i := range pod.Statuses {
		if server := &pod.Statuses[i]; server.Name == workload.BackendContainer && server.Ready {
			return fmt.Sprintf("%s/%d", pod.UID, server.RestartCount)
		}
	}
	return ""
}
