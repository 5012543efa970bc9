// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package versioned_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/generated/clientset/versioned/fake"
)

// A client of the cluster that kubectl uses.
func ExampleNewForConfig() {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	servers, err := client.ToolhiveV1beta1().MCPServers(metav1.NamespaceAll).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range servers.Items {
		fmt.Println(servers.Items[i].Name, servers.Items[i].Status.Phase)
	}
}

// Two managers own a part each of one MCPServer, and one gives its part back.
func Example_apply() {
	ctx := context.Background()
	var client versioned.Interface = fake.NewClientset()
	servers := client.ToolhiveV1beta1().MCPServers("default")

	author := toolhivev1beta1ac.MCPServer("weather", "default").WithSpec(toolhivev1beta1ac.MCPServerSpec().
		WithImage("example.com/weather:1").WithTransport(v1beta1.TransportStreamableHTTP))
	if _, err := servers.Apply(ctx, author, metav1.ApplyOptions{FieldManager: "author"}); err != nil {
		fmt.Println(err)
		return
	}
	policy := toolhivev1beta1ac.MCPServer("weather", "default").WithSpec(toolhivev1beta1ac.MCPServerSpec().
		WithAuthzConfig(toolhivev1beta1ac.AuthzConfigRef().WithType(v1beta1.AuthzConfigTypeInline).
			WithInline(toolhivev1beta1ac.InlineAuthzConfig().WithPolicies("permit(principal, action, resource);"))))
	server, err := servers.Apply(ctx, policy, metav1.ApplyOptions{FieldManager: "policy"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(server.Spec.Image, server.Spec.AuthzConfig.Inline.Policies)

	// Who applies nothing any more owns nothing, and what nobody owns goes.
	server, err = servers.Apply(ctx, toolhivev1beta1ac.MCPServer("weather", "default"), metav1.ApplyOptions{FieldManager: "policy"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(server.Spec.Image, server.Spec.AuthzConfig != nil)
	// Output:
	// example.com/weather:1 [permit(principal, action, resource);]
	// example.com/weather:1 false
}

// A condition of one's own in the status of an MCPServer; those of others stay.
func Example_applyStatus() {
	ctx := context.Background()
	servers := fake.NewClientset(&v1beta1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "weather"},
		Status: v1beta1.MCPServerStatus{Conditions: []metav1.Condition{
			{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Serving"},
		}},
	}).ToolhiveV1beta1().MCPServers("default")

	mine := toolhivev1beta1ac.MCPServer("weather", "default").WithStatus(toolhivev1beta1ac.MCPServerStatus().
		WithConditions(metav1ac.Condition().WithType("example.com/Audited").WithStatus(metav1.ConditionTrue).
			WithReason("Audited").WithMessage("nothing found").WithLastTransitionTime(metav1.Now())))
	server, err := servers.ApplyStatus(ctx, mine, metav1.ApplyOptions{FieldManager: "auditor"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, condition := range server.Status.Conditions {
		fmt.Println(condition.Type, condition.Status)
	}
	// Output:
	// Ready True
	// example.com/Audited True
}
