// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// services looks for pods of others to which Services of MCPServers lead, and for Services of others that lead to backends.
func (e *examination) services(c *Check) error {
	servers, err := e.servers()
	names := map[string][]string{} // by namespace
	for _, server := range servers {
		names[server.Namespace] = append(names[server.Namespace], server.Name)
		if told := problem(server.Status.Conditions, v1beta1.ConditionForeignPods, metav1.ConditionTrue); told != nil {
			c.about("mcpserver/"+server.Name, server.Namespace)(Warning, told.Reason, told.Message,
				e.Client.Kubectl("get", "pods", "-n", server.Namespace, "-l", v1beta1.LabelToolHiveName+"="+server.Name, "-o", "wide"))
		}
	}
	count, toProxies := 0, 0
	for _, namespace := range slices.Sorted(maps.Keys(names)) {
		services, missing := e.Client.All(corev1.SchemeGroupVersion.WithResource("services"), namespace)
		if missing == nil {
			missing = e.leading(c, namespace, names[namespace], services, &toProxies)
		}
		if missing != nil {
			c.cannot(missing)
		}
		count += len(services)
	}
	c.Detail = fmt.Sprintf("%d Services; %d of others lead to proxies", count, toProxies)
	return err
}

// leading finds the Services of others in a namespace that lead to backends of MCPServers, and counts those that lead to proxies.
func (e *examination) leading(c *Check, namespace string, servers []string, services []metav1.Object, toProxies *int) error {
	pods, err := e.Client.All(corev1.SchemeGroupVersion.WithResource("pods"), namespace)
	for _, service := range services {
		selected, _, _ := unstructured.NestedStringMap(service.(*unstructured.Unstructured).Object, "spec", "selector")
		selector, owners, leads := labels.SelectorFromSet(selected), inventory.Servers(managers.ServiceKind, service.GetName()), map[workload.Role]string{}
		for _, pod := range pods {
			role, name := workload.RoleOf(pod.GetLabels())
			if role != "" && len(selected) > 0 && slices.Contains(servers, name) && !slices.Contains(owners, name) && selector.Matches(labels.Set(pod.GetLabels())) {
				leads[role] = name
			}
		}
		if _, found := leads[workload.RoleProxy]; found {
			*toProxies++
		}
		if name, found := leads[workload.RoleBackend]; found {
			c.about("service/"+service.GetName(), namespace)(Warning, FoundPastProxy,
				fmt.Sprintf("it leads to pods of the backend of MCPServer %s: its clients pass by the proxy, and by authentication and policies", name),
				"Change its selector, or delete it. See docs/security.md.")
		}
	}
	return err
}
