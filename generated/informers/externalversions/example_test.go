// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package externalversions_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned/fake"
	"github.com/freehold-dev/freehold/generated/informers/externalversions"
)

// A program follows the MCPServers of a namespace, and reads them from its cache.
func Example() {
	client := fake.NewClientset(&v1beta1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "weather"},
		Status:     v1beta1.MCPServerStatus{URL: "http://mcp-weather-proxy.default.svc.cluster.local:8080/mcp"},
	})
	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0, externalversions.WithNamespace("default"))
	servers := factory.Toolhive().V1beta1().MCPServers()
	seen := make(chan string, 1)
	_, err := servers.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { seen <- obj.(*v1beta1.MCPServer).Name },
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	defer factory.Shutdown() // It waits for what the cancellation ends.
	defer cancel()
	factory.WaitForCacheSync(ctx.Done())

	server, err := servers.Lister().MCPServers("default").Get(<-seen)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(server.Name, "is at", server.Status.URL)
	// Output:
	// weather is at http://mcp-weather-proxy.default.svc.cluster.local:8080/mcp
}
