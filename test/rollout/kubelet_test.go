// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/freehold-dev/freehold/test/harness"
)

const (
	// nodeName is the one node. It has room for all pods of the suite.
	nodeName = "commanded"
	// leaseDuration is how long the node counts as alive without a sign.
	leaseDuration = 40 * time.Second
	// workers is how many pods the kubelet looks after at a time.
	workers = 8
)

// kubelet plays one as the API server sees it, with the rights of a node and no others: it reports what becomes of the
// pods that the scheduler gives it, as a test commands, and removes those that are deleted.
type kubelet struct {
	core  kubernetes.Interface
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
	pods  cache.Indexer

	mu         sync.Mutex
	behaviours map[subject]podBehaviour
	// exceptions are pods that behave differently from their subject.
	exceptions map[types.UID]podBehaviour
}

// subject are the pods of one tier that were made for one value of spec.image.
type subject struct {
	namespace string
	tier      harness.Component
	image     string
}

// startKubelet registers the node and runs its kubelet until the test ends.
func startKubelet(t *testing.T, env *harness.Env) *kubelet {
	t.Helper()
	config, err := env.Cluster.UserConfig("system:node:"+nodeName, "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	k := &kubelet{
		core:       core,
		behaviours: map[subject]podBehaviour{}, exceptions: map[types.UID]podBehaviour{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	if err := k.register(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		k.queue.ShutDown()
		group.Wait()
	})
	selector := fields.OneTermEqualSelector("spec.nodeName", nodeName)
	source := cache.NewListWatchFromClient(core.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, selector)
	informer := cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	enqueue := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok {
			k.queue.Add(cache.MetaObjectToName(pod))
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) },
	}); err != nil {
		t.Fatal(err)
	}
	k.pods = informer.GetIndexer()
	group.Go(func() { informer.RunWithContext(ctx) })
	group.Go(func() { k.stayAlive(ctx, t) })
	for range workers {
		group.Go(func() { k.work(ctx, t) })
	}
	return k
}

// register makes the node, which says of itself that it is Ready.
func (k *kubelet) register(ctx context.Context) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("10k"),
		corev1.ResourceMemory: resource.MustParse("100Ti"),
		corev1.ResourcePods:   resource.MustParse("10k"),
	}
	node, err := k.core.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: nodeName, Labels: map[string]string{corev1.LabelHostname: nodeName, corev1.LabelOSStable: "linux"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	node.Status = corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now,
		}},
	}
	if _, err := k.core.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return err
	}
	_, err = k.core.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(nodeName), LeaseDurationSeconds: new(int32(leaseDuration.Seconds())), RenewTime: new(metav1.NowMicro()),
		},
	}, metav1.CreateOptions{})
	return err
}

// stayAlive renews the lease, without which the node would be given up, and its pods with it.
func (k *kubelet) stayAlive(ctx context.Context, t *testing.T) {
	ticker := time.NewTicker(leaseDuration / 4)
	defer ticker.Stop()
	leases := k.core.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		lease, err := leases.Get(ctx, nodeName, metav1.GetOptions{})
		if err == nil {
			lease.Spec.RenewTime = new(metav1.NowMicro())
			_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		}
		if err != nil && ctx.Err() == nil {
			t.Errorf("the node's lease is not renewed: %v", err)
		}
	}
}

func (k *kubelet) work(ctx context.Context, t *testing.T) {
	for {
		key, shutdown := k.queue.Get()
		if shutdown {
			return
		}
		err := k.sync(ctx, key)
		switch {
		case err == nil, apierrors.IsNotFound(err), ctx.Err() != nil:
			k.queue.Forget(key)
		case apierrors.IsConflict(err): // What it looked at is not the newest.
			k.queue.AddRateLimited(key)
		default:
			t.Errorf("the kubelet and pod %s: %v", key, err)
		}
		k.queue.Done(key)
	}
}

// sync reports what becomes of a pod.
func (k *kubelet) sync(ctx context.Context, key cache.ObjectName) error {
	found, exists, err := k.pods.GetByKey(key.String())
	if err != nil || !exists {
		return err
	}
	pod, ok := found.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("the kubelet's cache holds a %T", found)
	}
	client := k.core.CoreV1().Pods(key.Namespace)
	if pod.DeletionTimestamp != nil {
		// Its containers have ended, so nothing is left to be waited for.
		return client.Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
	}
	next := pod.DeepCopy()
	if !k.behaviourOf(pod).report(next, time.Now()) {
		return nil
	}
	_, err = client.UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return err
}

// subjectOf tells what a pod was made for.
func subjectOf(pod *corev1.Pod) (subject, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || len(pod.Spec.Containers) == 0 {
		return subject{}, errors.New("a pod without an owner, or without containers")
	}
	container := pod.Spec.Containers[0]
	if owner.Kind == "StatefulSet" {
		return subject{pod.Namespace, harness.Backend, container.Image}, nil
	}
	// The proxy is told which image its backend has.
	return subject{pod.Namespace, harness.Proxy, container.Args[len(container.Args)-1]}, nil
}

func (k *kubelet) behaviourOf(pod *corev1.Pod) podBehaviour {
	of, err := subjectOf(pod)
	if err != nil {
		return ready
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if behaviour, ok := k.exceptions[pod.UID]; ok {
		return behaviour
	}
	return k.behaviours[of]
}

// setBehaviourOfNew sets how future pods behave, and leaves existing ones alone.
func (k *kubelet) setBehaviourOfNew(of subject, behaviour podBehaviour, there []corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range there {
		if is, err := subjectOf(&there[i]); err == nil && is == of {
			k.exceptions[there[i].UID] = k.behaviours[of]
		}
	}
	k.behaviours[of] = behaviour
}

// setBehaviourOfPod sets how one pod behaves.
func (k *kubelet) setBehaviourOfPod(pod *corev1.Pod, behaviour podBehaviour) {
	k.mu.Lock()
	k.exceptions[pod.UID] = behaviour
	k.mu.Unlock()
	k.queue.Add(cache.MetaObjectToName(pod))
}

// setBehaviour sets how existing and future pods behave from now on. Without it they become ready.
func (k *kubelet) setBehaviour(of subject, behaviour podBehaviour) {
	k.mu.Lock()
	k.behaviours[of] = behaviour
	k.mu.Unlock()
	for _, key := range k.pods.ListKeys() {
		if name, err := cache.ParseObjectName(key); err == nil && name.Namespace == of.namespace {
			k.queue.Add(name)
		}
	}
}

// tierPods returns the pods of a tier in the namespace, in the order of their names, as the API server has them.
func tierPods(ctx context.Context, ns *harness.Namespace, tier harness.Component) ([]corev1.Pod, error) {
	list, err := ns.Core.CoreV1().Pods(ns.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		of, err := subjectOf(&pod)
		return err != nil || of.tier != tier
	}), nil
}

// revisionOf is the revision that a StatefulSet has made a pod for.
func revisionOf(pod *corev1.Pod) string { return pod.Labels[appsv1.ControllerRevisionHashLabelKey] }
