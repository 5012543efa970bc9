// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/workload"
)

var noon = metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))

// marked are annotations of pods and of their templates.
func marked() map[string]string {
	return map[string]string{
		v1beta1.AnnotationRestartedAt: "noon", v1beta1.AnnotationGeneration: "3", v1beta1.AnnotationAttachedTo: "uid/1", "example.com/other": "x",
	}
}

var marks = workload.Marks{RestartedAt: "noon", Generation: "3", AttachedTo: "uid/1"}

func configMap(name string) corev1.Volume {
	source := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: source}}
}

func spec() corev1.PodSpec {
	return corev1.PodSpec{
		NodeName: "n", ServiceAccountName: "web-proxy-runner",
		Containers: []corev1.Container{
			{Name: "toolhive", Image: "runner", Ports: []corev1.ContainerPort{{ContainerPort: 8080}}, Command: []string{"run"}},
		},
		Volumes: []corev1.Volume{
			configMap("web-runconfig"),
			{Name: "none"},
			configMap("web-runconfig"),
			{Name: "all", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "theirs"}}}, {},
			}}}},
		},
	}
}

func pod() *corev1.Pod {
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: "Error", Message: "a long story", StartedAt: noon, FinishedAt: noon,
		}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1", UID: "1", ResourceVersion: "7", CreationTimestamp: noon, DeletionTimestamp: &noon, Annotations: marked(),
			Labels: map[string]string{v1beta1.LabelToolHiveName: "web", appsv1.DefaultDeploymentUniqueLabelKey: "5d8f9", appsv1.ControllerRevisionHashLabelKey: "r"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Other", Name: "other", UID: "8"}, {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d8f9", UID: "9", Controller: new(true)},
			},
		},
		Spec: spec(),
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", Message: "m",
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "r", Message: "m", LastTransitionTime: noon},
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
				{Type: "example.com/other", Status: corev1.ConditionFalse},
			},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "done", State: ended(0)}, {Name: "again", State: ended(1)}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "toolhive", Ready: true, Image: "x", RestartCount: 4, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: noon}}},
				{Name: "sidecar", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "m"}}, LastTerminationState: ended(2)},
			},
		},
	}
}

func termination(code int32) *workload.Termination {
	return &workload.Termination{ExitCode: code, Reason: "Error", StartedAt: noon, FinishedAt: noon}
}

func TestPodKeepsWhatIsRead(t *testing.T) {
	want := &workload.Pod{
		Marks: marks, Namespace: "shop", Name: "web-1", UID: "1", ResourceVersion: "7", CreationTimestamp: noon, DeletionTimestamp: &noon,
		Controller: workload.Controller{Name: "web-5d8f9", UID: "9"}, Server: "web", ReplicaSet: "5d8f9", Revision: "r",
		ServiceAccount: "web-proxy-runner", ConfigMaps: []string{"theirs", "web-runconfig"}, Containers: []workload.Container{{Name: "toolhive", Image: "runner"}},
		Phase: corev1.PodRunning, Ready: &workload.Condition{Status: corev1.ConditionFalse, Reason: "r", LastTransitionTime: noon},
		InitStatuses: []workload.ContainerStatus{{Name: "again", Terminated: termination(1)}},
		Statuses: []workload.ContainerStatus{
			{Name: "toolhive", Ready: true, RestartCount: 4, Running: &workload.Running{StartedAt: noon}},
			{Name: "sidecar", Waiting: &workload.Waiting{Reason: "CrashLoopBackOff"}, LastTermination: termination(2)},
		},
	}
	got := workload.PodOf(pod())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	identity, err := meta.Accessor(got)
	if err != nil || identity.GetNamespace() != "shop" || identity.GetName() != "web-1" || identity.GetUID() != "1" || identity.GetResourceVersion() != "7" {
		t.Errorf("identity %v, %v", identity, err)
	}
}

// Only what is read of a pod makes a difference.
func TestPodsDifferByWhatIsRead(t *testing.T) {
	for name, test := range map[string]struct {
		same   bool
		change func(*corev1.Pod)
	}{
		"a version":        {true, func(p *corev1.Pod) { p.ResourceVersion = "8" }},
		"a node":           {true, func(p *corev1.Pod) { p.Spec.NodeName = "other" }},
		"a message":        {true, func(p *corev1.Pod) { p.Status.ContainerStatuses[1].State.Waiting.Message = "other" }},
		"a foreign label":  {true, func(p *corev1.Pod) { p.Labels["a"] = "b" }},
		"a revision":       {false, func(p *corev1.Pod) { p.Labels[appsv1.ControllerRevisionHashLabelKey] = "other" }},
		"no node any more": {false, func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionFalse }},
		"ready":            {false, func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }},
		"a restart":        {false, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 5 }},
		"its end":          {false, func(p *corev1.Pod) { p.DeletionTimestamp = nil }},
	} {
		changed := pod()
		test.change(changed)
		if got := workload.PodOf(changed).SameExceptVersion(workload.PodOf(pod())); got != test.same {
			t.Errorf("%s: the same is %v, want %v", name, got, test.same)
		}
	}
}

func TestWorkloadsKeepWhatIsRead(t *testing.T) {
	named := metav1.ObjectMeta{Namespace: "shop", Name: "web"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: marked()}, Spec: spec()}
	wantTemplate := workload.Template{
		Marks: marks, ServiceAccount: "web-proxy-runner", ConfigMaps: []string{"theirs", "web-runconfig"}, Endpoint: workload.Endpoint{Port: "8080"},
	}
	deployment := workload.DeploymentOf(&appsv1.Deployment{
		ObjectMeta: named, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Paused: true, Template: template}, Status: appsv1.DeploymentStatus{Replicas: 2},
	})
	if diff := cmp.Diff(&workload.Deployment{
		ObjectMeta: named, Replicas: new(int32(2)), Paused: true, Template: wantTemplate, Status: appsv1.DeploymentStatus{Replicas: 2},
	}, deployment); diff != "" {
		t.Errorf("Deployment (-want +got):\n%s", diff)
	}

	updates := appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	template.Spec.Containers = []corev1.Container{{Name: "mcp", Env: []corev1.EnvVar{{Name: "MCP_PORT", Value: "9090"}, {Name: "MCP_TRANSPORT", Value: "sse"}, {Name: "A"}}}}
	wantTemplate.Endpoint = workload.Endpoint{Port: "9090", Transport: "sse"}
	set := workload.StatefulSetOf(&appsv1.StatefulSet{
		ObjectMeta: named, Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(2)), UpdateStrategy: updates, PodManagementPolicy: appsv1.ParallelPodManagement, Template: template,
		}, Status: appsv1.StatefulSetStatus{Replicas: 2},
	})
	if diff := cmp.Diff(&workload.StatefulSet{
		ObjectMeta: named, Replicas: new(int32(2)), UpdateStrategy: updates, PodManagementPolicy: appsv1.ParallelPodManagement, Template: wantTemplate,
		Status: appsv1.StatefulSetStatus{Replicas: 2},
	}, set); diff != "" {
		t.Errorf("StatefulSet (-want +got):\n%s", diff)
	}

	account := workload.ServiceAccountOf(&corev1.ServiceAccount{ObjectMeta: named, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "a"}, {Name: "b"}}})
	if diff := cmp.Diff(&workload.ServiceAccount{ObjectMeta: named, ImagePullSecrets: []string{"a", "b"}}, account); diff != "" {
		t.Errorf("ServiceAccount (-want +got):\n%s", diff)
	}
}
