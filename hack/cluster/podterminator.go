// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// terminationRetry is how long to wait after a failed deletion of a pod before the next attempt.
const terminationRetry = 200 * time.Millisecond

// podTerminator deletes the terminating pods of fake nodes, as a kubelet does when their containers have ended.
//
// kwok could do that too, but by the name of a pod alone. When it is late, which it is on a busy machine, it deletes the
// next pod of a StatefulSet in place of the one that was to go, then the one that is made for that, and so on.
type podTerminator struct {
	client kubernetes.Interface
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// startPodTerminator begins to delete pods, with the rights of kwok, until end is called.
func startPodTerminator(kubeconfig string) (*podTerminator, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading a kubeconfig: %w", err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &podTerminator{client: client, stop: stop}
	look := func(object any) {
		pod, ok := object.(*corev1.Pod)
		if ok && pod.DeletionTimestamp != nil && pod.Spec.NodeName != "" {
			p.ended.Go(func() { p.delete(ctx, pod) })
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.Everything()),
		ObjectType:    &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: look, UpdateFunc: func(_, object any) { look(object) },
		},
		Transform: func(object any) (any, error) {
			if pod, ok := object.(*corev1.Pod); ok {
				// What is looked at, and no more.
				return &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
						ResourceVersion: pod.ResourceVersion, DeletionTimestamp: pod.DeletionTimestamp,
					},
					Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName},
				}, nil
			}
			return object, nil
		},
	})
	p.ended.Go(func() { informer.RunWithContext(ctx) })
	return p, nil
}

// delete deletes a pod, and tries again for as long as the API server does not answer.
func (p *podTerminator) delete(ctx context.Context, pod *corev1.Pod) {
	_ = wait.PollUntilContextCancel(ctx, terminationRetry, true, func(ctx context.Context) (gone bool, err error) {
		err = p.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
		return err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err), nil
	})
}

// end returns when nothing is deleted any more.
func (p *podTerminator) end() {
	p.stop()
	p.ended.Wait()
}
