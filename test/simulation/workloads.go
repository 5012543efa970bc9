// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/freehold-dev/freehold/internal/apiserver"
)

// The names under which the controllers of Kubernetes write.
const (
	controllerManager = "kube-controller-manager"
	kubelet           = "kubelet"
	collector         = "garbage-collector"
)

// task is one thing that a controller of Kubernetes has to do. Its name tells it apart from the others.
type task struct {
	name string
	do   func() error
}

// workloads are the controllers of Deployments, ReplicaSets and StatefulSets, the garbage collector, and a kubelet whose
// containers run and are ready at once. They do what real ones do in steps that are as small as theirs, and in no order of
// their own: each task may be the next one.
type workloads struct {
	server                               *apiserver.Server
	deployments, replicaSets, sets, pods *apiserver.Kind
	namespaces                           *apiserver.Kind
	collected                            []*apiserver.Kind
	containers                           int
	// tasks are those at the version seen. The first ones, ofWorkloads, depend on nothing but what was listed.
	seen        uint64
	tasks       []task
	ofWorkloads int
	listed      lists
	// ready counts the pods that are ready, and stay, by their controllers.
	ready map[types.UID]int
	// revisions are those of the templates of present objects, which never change: another version is another object.
	revisions map[*corev1.PodTemplateSpec]string
	// tended has, by UID, what each controller had to do when it last looked.
	tended map[types.UID]tended
	// unsure is set by a controller whose work depends on more than it was given.
	unsure  bool
	garbage garbage
}

// lists are the objects of several kinds.
type lists [][]runtime.Object

// same reports whether two lists have the same objects in the same versions. Each version of an object is another object, and what
// List returns is another list as soon as something has changed.
func same(a, b []runtime.Object) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// list lists kinds.
func (w *workloads) list(kinds ...*apiserver.Kind) lists {
	all := make(lists, len(kinds))
	for i, k := range kinds {
		all[i] = w.server.List(k)
	}
	return all
}

// tended is what was to be done for an object and what belongs to it. It is the same as long as they are, since each version of
// an object is another object.
type tended struct {
	object runtime.Object
	parts  []runtime.Object
	tasks  []task
}

func newWorkloads(server *apiserver.Server, kinds []*apiserver.Kind) *workloads {
	kinds = contents(kinds)
	return &workloads{
		server: server, collected: kinds, namespaces: server.KindOf("", "Namespace"),
		deployments: server.KindOf("apps", "Deployment"), replicaSets: server.KindOf("apps", "ReplicaSet"),
		sets: server.KindOf("apps", "StatefulSet"), pods: server.KindOf("", "Pod"),
		garbage: garbage{listed: make(lists, len(kinds)), idle: make([]bool, len(kinds)), alive: map[types.UID]bool{}},
	}
}

// waiting returns what is to be done, in an order that is the same in each run.
func (w *workloads) waiting() []task {
	version := w.server.Version()
	if version == w.seen {
		return w.tasks
	}
	w.seen = version
	w.tasks = slices.Delete(w.tasks, w.ofWorkloads, len(w.tasks))
	if now := w.list(w.pods, w.replicaSets, w.deployments, w.sets); !slices.EqualFunc(now, w.listed, same) {
		w.listed, w.tasks = now, nil
		w.tendAll(now[0], now[1], now[2], now[3])
		w.ofWorkloads = len(w.tasks)
	}
	w.collect()
	w.endNamespaces()
	return w.tasks
}

// tendAll adds what is to be done for pods and workloads.
func (w *workloads) tendAll(pods, replicaSets, deployments, sets []runtime.Object) {
	earlier, before := w.revisions, w.tended
	w.tended = make(map[types.UID]tended, len(before))
	w.revisions = make(map[*corev1.PodTemplateSpec]string, len(earlier))
	revisionOf := func(template *corev1.PodTemplateSpec) string {
		if _, known := earlier[template]; !known {
			return hashOf(template)
		}
		return earlier[template]
	}
	podsOf := map[types.UID][]runtime.Object{}
	w.ready = map[types.UID]int{}
	for _, obj := range pods {
		pod := obj.(*corev1.Pod)
		w.tendPod(pod)
		if owner := metav1.GetControllerOf(pod); owner != nil {
			podsOf[owner.UID] = append(podsOf[owner.UID], pod)
			if pod.DeletionTimestamp == nil && isReady(pod) {
				w.ready[owner.UID]++
			}
		}
	}
	replicaSetsOf := map[types.UID][]runtime.Object{}
	for _, obj := range replicaSets {
		set := obj.(*appsv1.ReplicaSet)
		parts := podsOf[set.UID]
		w.tend(before[set.UID], set, parts, func() { w.tendReplicaSet(set, partsAs[*corev1.Pod](parts)) })
		if owner := metav1.GetControllerOf(set); owner != nil {
			replicaSetsOf[owner.UID] = append(replicaSetsOf[owner.UID], set)
		}
	}
	for _, obj := range deployments {
		deployment := obj.(*appsv1.Deployment)
		w.revisions[&deployment.Spec.Template] = revisionOf(&deployment.Spec.Template)
		parts := replicaSetsOf[deployment.UID]
		w.tend(before[deployment.UID], deployment, parts, func() { w.tendDeployment(deployment, partsAs[*appsv1.ReplicaSet](parts)) })
	}
	for _, obj := range sets {
		set := obj.(*appsv1.StatefulSet)
		w.revisions[&set.Spec.Template] = revisionOf(&set.Spec.Template)
		parts := podsOf[set.UID]
		w.tend(before[set.UID], set, parts, func() { w.tendStatefulSet(set, partsAs[*corev1.Pod](parts)) })
	}
}

// tend adds what is to be done for an object: what was to be done before, if it and its parts are the same as then.
func (w *workloads) tend(before tended, obj runtime.Object, parts []runtime.Object, look func()) {
	w.unsure = false
	if before.object != obj || !slices.Equal(before.parts, parts) {
		begin := len(w.tasks)
		look()
		before = tended{obj, parts, slices.Clone(w.tasks[begin:])}
	} else {
		w.tasks = append(w.tasks, before.tasks...)
	}
	if !w.unsure {
		w.tended[access(obj).GetUID()] = before
	}
}

func partsAs[T runtime.Object](objects []runtime.Object) []T {
	all := make([]T, len(objects))
	for i, obj := range objects {
		all[i] = obj.(T)
	}
	return all
}

func (w *workloads) add(do func() error, name string, args ...any) {
	w.tasks = append(w.tasks, task{fmt.Sprintf(name, args...), do})
}

// edit adds the task to change an object.
func (w *workloads) edit(k *apiserver.Kind, obj metav1.Object, subresource, manager string, change func(runtime.Object)) {
	w.add(func() error {
		return w.server.Edit(k, obj.GetNamespace(), obj.GetName(), subresource, manager, change)
	}, "%s updates %s %s/%s", manager, k.Kind, obj.GetName(), subresource)
}

// remove adds the task to delete an object.
func (w *workloads) remove(k *apiserver.Kind, obj metav1.Object, manager string, grace *int64) {
	uid := obj.GetUID()
	w.add(func() error {
		return w.server.Delete(k, obj.GetNamespace(), obj.GetName(), manager, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: grace,
		})
	}, "%s deletes %s %s", manager, k.Kind, obj.GetName())
}

// tendPod is a kubelet's work.
func (w *workloads) tendPod(pod *corev1.Pod) {
	switch {
	case pod.DeletionTimestamp != nil:
		w.remove(w.pods, pod, kubelet, new(int64))
	case pod.Status.Phase != corev1.PodRunning || !isReady(pod):
		w.edit(w.pods, pod, "status", kubelet, func(obj runtime.Object) { w.run(obj.(*corev1.Pod)) })
	}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// run starts the containers of a pod.
func (w *workloads) run(pod *corev1.Pod) {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	before := pod.Status.ContainerStatuses
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}}
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		w.containers++
		id := fmt.Sprintf("containerd://%d", w.containers)
		if i < len(before) {
			id = before[i].ContainerID
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ImageID: container.Image + "@sha256:0", ContainerID: id,
			Ready: true, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
}

// tendReplicaSet makes and removes pods, and counts them.
func (w *workloads) tendReplicaSet(set *appsv1.ReplicaSet, pods []*corev1.Pod) {
	if set.DeletionTimestamp != nil {
		return
	}
	alive := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	ready := count(alive, isReady)
	want := int(*set.Spec.Replicas)
	switch {
	case len(alive) < want:
		w.add(func() error {
			pod := podOf(&set.Spec.Template, set, "ReplicaSet")
			pod.Name = fmt.Sprintf("%s-%d", set.Name, w.server.Version())
			return w.server.Create(w.pods, pod, controllerManager)
		}, "%s creates a pod of %s", controllerManager, set.Name)
	case len(alive) > want:
		// The real one removes those first that are not ready.
		slices.SortStableFunc(alive, func(a, b *corev1.Pod) int { return btoi(isReady(a)) - btoi(isReady(b)) })
		w.remove(w.pods, alive[0], controllerManager, nil)
	}
	next := appsv1.ReplicaSetStatus{
		Replicas: int32(len(alive)), FullyLabeledReplicas: int32(len(alive)), ReadyReplicas: ready, AvailableReplicas: ready,
		ObservedGeneration: set.Generation, Conditions: set.Status.Conditions, TerminatingReplicas: new(int32(len(pods) - len(alive))),
	}
	w.report(w.replicaSets, set, set.Status, next, func(obj runtime.Object) { obj.(*appsv1.ReplicaSet).Status = next })
}

// report adds the task to write a status that is not what it should be.
func (w *workloads) report(k *apiserver.Kind, obj metav1.Object, now, next any, change func(runtime.Object)) {
	if text(now) != text(next) {
		w.edit(k, obj, "status", controllerManager, change)
	}
}

// podOf makes a pod of a template.
func podOf(template *corev1.PodTemplateSpec, owner metav1.Object, kind string) *corev1.Pod {
	template = template.DeepCopy()
	template.Spec.NodeName = "node" // The scheduler is not simulated.
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.GetNamespace(), Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))},
		},
		Spec: template.Spec,
	}
}

func withLabel(labels map[string]string, key, value string) map[string]string {
	all := map[string]string{key: value}
	for k, v := range labels {
		if k != key {
			all[k] = v
		}
	}
	return all
}

// hashOf tells templates apart, in the alphabet of real revisions.
func hashOf(template *corev1.PodTemplateSpec) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text(template)))
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

func text(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic(err) // API objects are always JSON
	}
	return string(encoded)
}

func count(pods []*corev1.Pod, is func(*corev1.Pod) bool) (n int32) {
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && is(pod) {
			n++
		}
	}
	return n
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
