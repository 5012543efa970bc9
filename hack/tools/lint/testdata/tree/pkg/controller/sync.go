// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	_ "github.com/freehold-dev/freehold/cmd/freehold/options" // want depguard:controller
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	_ "github.com/freehold-dev/freehold/pkg/metricsserver" // want depguard:controller
)

// Sync does what only pkg/apply may do, and reads where it should look into a cache.
func Sync(ctx context.Context, c kubernetes.Interface, s versioned.Interface, d dynamic.ResourceInterface, i cache.Indexer) {
	deployments := c.AppsV1().Deployments("")
	_, _ = deployments.Apply(ctx, nil, metav1.ApplyOptions{})                                                 // want write write
	_, _ = deployments.Create(ctx, nil, metav1.CreateOptions{})                                               // want never-write write
	_, _ = s.ToolhiveV1beta1().MCPServers("").UpdateStatus(ctx, nil, metav1.UpdateOptions{})                  // want never-write write
	_, _ = s.ToolhiveV1beta1().MCPServers("").Patch(ctx, "", types.JSONPatchType, nil, metav1.PatchOptions{}) // want write write
	_, _ = d.Apply(ctx, "", nil, metav1.ApplyOptions{})                                                       // want write write
	_, _ = deployments.ApplyScale(ctx, "", nil, metav1.ApplyOptions{Force: true})                             // want write write force
	_, _ = deployments.Get(ctx, "", metav1.GetOptions{})                                                      // want read
	_, _ = s.ToolhiveV1beta1().MCPServers("").List(ctx, metav1.ListOptions{})                                 // want read
	_, _, _ = i.Get("what a cache holds may be read")
	_ = i.Update("and so may be what is no object of a cluster")

	time.Sleep(time.Second)      // want sleep
	<-time.After(time.Second)    // a queue may wait
	fmt.Println("said")          // want print
	klog.Infof("not contextual") // want log
	klog.FromContext(ctx).Info("ok")
	_ = context.Background() // want context
}
