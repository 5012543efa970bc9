// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Unreadable returns what ToolHive's operator cannot read of an MCPServer; empty when it can read it. The API server accepts
// more durations than Go parses, and an operator that cannot read one object of a list reconciles none.
func Unreadable(server *v1beta1.MCPServer) (field, value string) {
	if timeout := server.Spec.ProxyReadTimeout; timeout != "" && !isDuration(timeout) {
		return "spec.proxyReadTimeout", timeout
	}
	limits := server.Spec.RateLimiting
	if limits == nil {
		return "", ""
	}
	if field, value = unreadableBucket("spec.rateLimiting", limits.Shared, limits.PerUser); field != "" {
		return field, value
	}
	for i, tool := range limits.Tools {
		if field, value = unreadableBucket(fmt.Sprintf("spec.rateLimiting.tools[%d]", i), tool.Shared, tool.PerUser); field != "" {
			return field, value
		}
	}
	return "", ""
}

func unreadableBucket(path string, shared, perUser *v1beta1.RateLimitBucket) (field, value string) {
	if shared != nil && !isDuration(shared.RefillPeriod) {
		return path + ".shared.refillPeriod", shared.RefillPeriod
	}
	if perUser != nil && !isDuration(perUser.RefillPeriod) {
		return path + ".perUser.refillPeriod", perUser.RefillPeriod
	}
	return "", ""
}

// UnreadableConfig returns the same of an object that MCPServers refer to. The schema admits such a duration in two kinds only: in an
// MCPWebhookConfig, and in an MCPExternalAuthConfig one field of which may be any text.
func UnreadableConfig(object *unstructured.Unstructured) (field, value string) {
	switch object.GetKind() {
	case v1beta1.MCPExternalAuthConfigKind:
		skew, found, _ := unstructured.NestedString(object.Object, "spec", "obo", "cacheSkew")
		if found && !isDuration(skew) {
			return "spec.obo.cacheSkew", skew
		}
	case v1beta1.MCPWebhookConfigKind:
		return unreadableWebhook(object)
	}
	return "", ""
}

func unreadableWebhook(object *unstructured.Unstructured) (field, value string) {
	for _, name := range []string{"mutating", "validating"} {
		webhooks, _, _ := unstructured.NestedSlice(object.Object, "spec", name)
		for i := range webhooks {
			webhook, _ := webhooks[i].(map[string]any)
			if timeout, ok := webhook["timeout"].(string); ok && !isDuration(timeout) {
				return fmt.Sprintf("spec.%s[%d].timeout", name, i), timeout
			}
		}
	}
	return "", ""
}

// isDuration reports whether Go parses a duration.
func isDuration(text string) bool {
	_, err := time.ParseDuration(text)
	return err == nil
}
