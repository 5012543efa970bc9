// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/render"
)

func configMapVolume(name, configMap string) corev1.Volume {
	source := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: source}}
}

func TestReplicaSetKeepsWhatLeadsToItsDeployment(t *testing.T) {
	set := proxySet("web", "deployment-web")
	set.ResourceVersion = "7"
	set.Spec.Template.Spec = corev1.PodSpec{
		ServiceAccountName: "web-proxy-runner",
		Volumes: []corev1.Volume{
			configMapVolume("b", "web-runconfig"), configMapVolume("again", "web-runconfig"),
			{Name: "none"},
			{Name: "all", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "theirs"}}}, {},
			}}}},
		},
	}
	item, err := observed.ReduceDependent(set)
	if err != nil {
		t.Fatal(err)
	}
	got := item.(observed.ReplicaSet)
	if again, err := observed.ReduceDependent(got); err != nil || again != item {
		t.Errorf("transformed again: %v, %v", again, err)
	}
	if got.Deployment() != "deployment-web" || got.Server() != key("web") || got.ServiceAccount() != "web-proxy-runner" {
		t.Errorf("Deployment %q, MCPServer %s, ServiceAccount %q", got.Deployment(), got.Server(), got.ServiceAccount())
	}
	if diff := cmp.Diff([]string{"theirs", "web-runconfig"}, got.ConfigMaps()); diff != "" {
		t.Errorf("ConfigMaps (-want +got):\n%s", diff)
	}
	if name, err := cache.MetaNamespaceKeyFunc(got); name != "shop/web-5d8f9" || err != nil {
		t.Errorf("key %q, %v", name, err)
	}
	accessor, err := meta.Accessor(got)
	if err != nil || accessor.GetUID() != "set-of-web" || accessor.GetResourceVersion() != "7" {
		t.Errorf("identity %v, %v", accessor, err)
	}
	bare := observed.ReducedReplicaSet(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "alone"}})
	if bare.Deployment() != "" || bare.ServiceAccount() != "" || bare.ConfigMaps() != nil {
		t.Errorf("a ReplicaSet of nobody: %+v", bare)
	}
}

// copyOf adds a copy of a pod under another name, as kubectl debug --copy-to --keep-labels makes it: without a controller,
// not ready, and, as time passes, older than the template.
func copyOf(o *operating, pod, name string) {
	o.t.Helper()
	original, ok := get[*corev1.Pod](o.apiServer, pod)
	if !ok {
		o.t.Fatalf("there is no pod %s", pod)
	}
	debug := original.DeepCopy()
	debug.Name, debug.UID, debug.OwnerReferences = name, "", nil
	debug.Labels = maps.Clone(debug.Labels)
	debug.Labels[appsv1.ControllerRevisionHashLabelKey] = "earlier"
	debug.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(bubbleStart.Add(-time.Hour)),
	}}
	debug.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: debug.Status.ContainerStatuses[0].Name, State: backOff, RestartCount: 3,
	}}
	o.add(debug)
	o.rest()
}

// A pod that has the labels of an MCPServer's pods and another controller, or none, changes nothing, and nothing happens to
// it: no status, no eviction, no restart and no recovery.
func TestPodsOfOthersDecideNothing(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		copyOf(o, "web-0", "web-0-debug")
		copyOf(o, "web-0", "web-copy-1")
		copyOf(o, proxyPodName, "web-proxy-debug")
		<-time.After(time.Hour)
		o.rest()
		o.expect(nil, "copies of pods")
		if server := o.server("web"); !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionReady) {
			t.Errorf("status %+v", server.Status)
		}

		o.backend(0)
		o.backend(1)
		if deleted := o.deleted(); len(deleted) > 0 {
			t.Errorf("after an outage %v were deleted", deleted)
		}
		o.request(asked, "immediate")
		if deleted := o.deleted(); !slices.Equal(deleted, []string{proxyPodName}) {
			t.Errorf("for an immediate restart %v were deleted, want the proxy's own pod", deleted)
		}
	})
}

// A pod of others that gets a share of the requests is told as long as it does, with one write and one event, and left alone.
func TestPodsOfOthersThatServicesSelectAreTold(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		for original, names := range map[string][]string{"web-0": {"web-0-debug", "web-0-other", "web-0-evil"}, proxyPodName: {"web-proxy-debug"}} {
			for _, name := range names {
				copyOf(o, original, name)
			}
		}
		ready := func(name string, alter func(*corev1.Pod)) {
			change(o.apiServer, name, func(pod *corev1.Pod) {
				pod.Status.Conditions[0].Status = corev1.ConditionTrue
				alter(pod)
			})
		}
		o.took()
		ready("web-0-other", func(pod *corev1.Pod) { delete(pod.Labels, "app") })
		o.rest()
		o.expect(nil, "a pod that no Service selects")
		for _, name := range []string{"web-0-debug", "web-proxy-debug"} {
			ready(name, func(*corev1.Pod) {})
		}
		ready("web-0-evil", func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "evil", UID: "evil", Controller: new(true)}}
		})
		o.rest()
		status, reason, message := o.condition("web", v1beta1.ConditionForeignPods)
		if status != metav1.ConditionTrue || reason != v1beta1.ReasonSelectedByService || !strings.Contains(message, ": web-0-debug, web-0-evil, web-proxy-debug. ") {
			t.Errorf("%s because of %s: %s", status, reason, message)
		}
		if server := o.server("web"); !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionReady) {
			t.Errorf("status %+v", server.Status)
		}
		o.took()
		<-time.After(time.Hour)
		o.rest()
		o.expect(nil, "an hour with them")
		for _, name := range []string{"web-0-debug", "web-0-evil"} {
			remove[*corev1.Pod](o.apiServer, name)
		}
		change(o.apiServer, "web-proxy-debug", func(pod *corev1.Pod) { delete(pod.Labels, "toolhive-name") })
		o.rest()
		if status, _, message := o.condition("web", v1beta1.ConditionForeignPods); status != "" {
			t.Errorf("without them ForeignPods is %s: %s", status, message)
		}
	})
}

// The caches of workloads and of pods are filled independently: the MCPServer's own pods are told of at no time.
func TestOwnPodsAreNotForeignBeforeTheirWorkloadIsKnown(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		for _, of := range []string{"web-0", proxyPodName} {
			change(o.apiServer, of, func(pod *corev1.Pod) {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			})
		}
		o.rest()
		for _, stale := range []func(){
			func() { remove[*appsv1.Deployment](o.apiServer, "web") }, func() { remove[*appsv1.ReplicaSet](o.apiServer, "web-5d8f9") },
			func() { remove[*appsv1.StatefulSet](o.apiServer, "web") },
		} {
			stale()
			if foreign := o.caches.ForeignPods(key("web")); len(foreign) > 0 {
				t.Errorf("%s is told", foreign[0].Name)
			}
			o.rest()
			if status, _, message := o.condition("web", v1beta1.ConditionForeignPods); status != "" {
				t.Errorf("ForeignPods is %s: %s", status, message)
			}
		}
	})
}

// A backend whose pod's labels somebody changed still has it: its controller says so.
func TestPodsAreFoundWithoutTheirName(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		change(o.apiServer, "web-0", func(pod *corev1.Pod) {
			pod.Labels["toolhive-name"] = "other"
			pod.Status.Conditions[0].Status = corev1.ConditionFalse
			pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "mcp", State: backOff, RestartCount: 3}
		})
		o.backend(0)
		if _, reason, message := o.condition("web", v1beta1.ConditionStalled); reason != "CrashLoopBackOff" {
			t.Errorf("Stalled tells of %s: %s", reason, message)
		}
	})
}

// The caches of two kinds are filled independently. A pod that is known before its ReplicaSet counts as soon as that is known.
func TestAPodBeforeItsReplicaSetCountsLater(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		backendReady(o.apiServer, "web")
		o.addBackendPod(o.server("web"), "first")
		o.rest()
		change(o.apiServer, "web", func(d *appsv1.Deployment) {
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1}
		})
		pod := proxyPod("web", render.ProxySelector("web"))
		pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "toolhive", State: backOff, RestartCount: 3}
		o.add(pod)
		o.rest()
		before := o.server("web").Status.Phase
		deployment, _ := get[*appsv1.Deployment](o.apiServer, "web")
		o.add(proxySet("web", deployment.UID))
		o.rest()
		if after := o.server("web").Status.Phase; before == v1beta1.PhaseFailed || after != v1beta1.PhaseFailed {
			t.Errorf("the phase is %s before the ReplicaSet is known, and %s after", before, after)
		}
		o.took()
		change(o.apiServer, "web-5d8f9", func(set *appsv1.ReplicaSet) { set.Status.Replicas = 1 })
		o.rest()
		o.expect(nil, "a ReplicaSet counts its pods")
	})
}

// A takeover waits for the pods of ToolHive's proxy also when their ReplicaSet is gone already.
func TestTakeoverWaitsForPodsWithoutTheirReplicaSet(t *testing.T) {
	operate(t, byToolHive("web", "2"), nil, func(t *testing.T, o *operating) {
		remove[*appsv1.ReplicaSet](o.apiServer, "web-5d8f9")
		o.rest()
		o.queue.Add(key("web"))
		o.rest()
		if got := o.taken("web"); slices.Contains(got, "freehold-backend") {
			t.Errorf("%v were taken while a proxy of ToolHive's is there", got)
		}
		o.replaceProxy("web")
		if got := o.taken("web"); len(got) != 2 {
			t.Errorf("%v were taken, want both", got)
		}
	})
}
