// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/workload"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// serving is a rollout that is over.
var serving = rollout.State{Phase: rollout.Complete, Ready: true}

func server() *v1beta1.MCPServer {
	return &v1beta1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "1", Generation: 3},
		Spec:       v1beta1.MCPServerSpec{Image: "x", Transport: v1beta1.TransportStreamableHTTP},
	}
}

// known is the status of a server whose first start is over.
func known(phase v1beta1.MCPServerPhase, message string) v1beta1.MCPServerStatus {
	return v1beta1.MCPServerStatus{Phase: phase, Message: message, ObservedGeneration: 3}
}

// deployment counts more pods as ready than any test has, so that the pods themselves tell.
func deployment(replicas *int32) *workload.Deployment {
	return &workload.Deployment{
		Replicas: replicas, Status: appsv1.DeploymentStatus{ReadyReplicas: 9},
	}
}

func backend(ready int32) *workload.StatefulSet {
	return &workload.StatefulSet{Status: appsv1.StatefulSetStatus{ReadyReplicas: ready}}
}

func pods(of ...*workload.Pod) []*workload.Pod { return of }

func pod(phase corev1.PodPhase, containers ...workload.ContainerStatus) *workload.Pod {
	return &workload.Pod{Name: "web-1", Phase: phase, Statuses: containers}
}

func running() *workload.Pod {
	return pod(corev1.PodRunning, workload.ContainerStatus{Ready: true})
}

func waiting(phase corev1.PodPhase, reason string) *workload.Pod {
	return pod(phase, workload.ContainerStatus{Waiting: &workload.Waiting{Reason: reason}})
}

func exited(code int32) *workload.Pod {
	return pod(corev1.PodRunning, workload.ContainerStatus{Terminated: &workload.Termination{ExitCode: code}})
}

func going(p *workload.Pod) *workload.Pod {
	p.DeletionTimestamp = &metav1.Time{Time: noon}
	return p
}

func invalid(condition, message string) status.Finding {
	return status.Finding{Condition: condition, Status: metav1.ConditionFalse, Reason: "Bad", Message: message}
}

// brief is a condition without its times.
type brief struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

func find(s v1beta1.MCPServerStatus, conditionType string) *brief {
	c := meta.FindStatusCondition(s.Conditions, conditionType)
	if c == nil {
		return nil
	}
	return &brief{c.Status, c.Reason, c.Message}
}
