// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// proxyResources are spec.resources; nil when it sets none. They are the proxy's, not the MCP server's: that
// is how ToolHive reads them.
func (r *renderer) proxyResources() *corev1ac.ResourceRequirementsApplyConfiguration {
	limits := r.resourceList("spec.resources.limits", r.server.Spec.Resources.Limits)
	requests := r.resourceList("spec.resources.requests", r.server.Spec.Resources.Requests)
	for _, text := range impossible(limits, requests) {
		r.invalidSpec(v1beta1.ReasonInvalidQuantity, "spec.resources.%s.", text)
	}
	if len(limits) == 0 && len(requests) == 0 {
		return nil
	}
	resources := corev1ac.ResourceRequirements()
	if len(limits) > 0 {
		resources.WithLimits(limits)
	}
	if len(requests) > 0 {
		resources.WithRequests(requests)
	}
	return resources
}

func (r *renderer) resourceList(path string, wanted v1beta1.ResourceList) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, entry := range []struct {
		name  corev1.ResourceName
		value string
	}{{corev1.ResourceCPU, wanted.CPU}, {corev1.ResourceMemory, wanted.Memory}} {
		if entry.value == "" {
			continue
		}
		var quantity resource.Quantity
		err := resource.ErrFormatWrong
		if handy(entry.value) {
			quantity, err = resource.ParseQuantity(entry.value)
		}
		if err != nil {
			r.invalidSpec(v1beta1.ReasonInvalidQuantity, "%s.%s %s is not a quantity such as 500m or 64Mi.",
				path, entry.name, quote(entry.value))
			continue
		}
		list[entry.name] = quantity
	}
	roundUp(list)
	return list
}

// impossible lists the quantities that no API server accepts, in the order of their names.
func impossible(limits, requests corev1.ResourceList) []string {
	var texts []string
	for field, list := range map[string]corev1.ResourceList{"limits": limits, "requests": requests} {
		for name, quantity := range list {
			if quantity.Sign() < 0 {
				texts = append(texts, fmt.Sprintf("%s.%s %s is negative", field, name, quantity.String()))
			}
		}
	}
	for name, request := range requests {
		if limit, limited := limits[name]; limited && request.Cmp(limit) > 0 {
			texts = append(texts, fmt.Sprintf("requests.%s %s is more than the limit of %s",
				name, request.String(), limit.String()))
		}
	}
	slices.Sort(texts)
	return texts
}
