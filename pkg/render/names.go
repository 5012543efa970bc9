// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// Names of the objects made for the MCPServer of a name. They are ToolHive's; its users and other operators
// know them.

// DeploymentName is the name of the proxy's Deployment.
func DeploymentName(name string) string { return name }

// StatefulSetName is the name of the backend's StatefulSet.
func StatefulSetName(name string) string { return name }

// ProxyServiceName is the name of the Service that clients use.
func ProxyServiceName(name string) string { return "mcp-" + name + "-proxy" }

// BackendServiceName is the name of the Service by which the proxy reaches a backend with an HTTP transport.
func BackendServiceName(name string) string { return "mcp-" + name }

// HeadlessServiceName is the name of the backend's headless Service.
func HeadlessServiceName(name string) string { return "mcp-" + name + "-headless" }

// The ConfigMaps that Freehold makes are named by their content, so that a pod of any revision of the proxy's Deployment
// reads what its template was made with. ToolHive, and Freehold before that, gave them the name without the digest.
const (
	runConfigSuffix   = "-runconfig"
	inlineAuthzSuffix = "-authz-inline"
	// digestLength is how much of a content's SHA-256 is part of a name, in hexadecimal digits.
	digestLength = 16
)

// RunConfigName is the name of the ConfigMap that holds a RunConfig of the proxy, made of its content.
func RunConfigName(name string, data map[string]string) string {
	return LegacyRunConfigName(name) + "-" + contentDigest(data)
}

// InlineAuthzName is the name of the ConfigMap that holds an inline authorization policy, made of its content.
func InlineAuthzName(name string, data map[string]string) string {
	return LegacyInlineAuthzName(name) + "-" + contentDigest(data)
}

// LegacyRunConfigName is the name that ToolHive gives the ConfigMap of a RunConfig, whatever its content.
func LegacyRunConfigName(name string) string { return name + runConfigSuffix }

// LegacyInlineAuthzName is the name that ToolHive gives the ConfigMap of an inline authorization policy.
func LegacyInlineAuthzName(name string) string { return name + inlineAuthzSuffix }

// ConfigName is the name of a ConfigMap that holds a RunConfig or an inline authorization policy, taken apart.
type ConfigName struct {
	// Server is the MCPServer.
	Server string
	// Writer is the field manager that makes it, a name of package managers.
	Writer string
	// Legacy tells that the name does not tell the content.
	Legacy bool
}

// ParseConfigName takes the name of a ConfigMap apart; ok is false when it is not one of ours.
func ParseConfigName(configMap string) (found ConfigName, ok bool) {
	found.Legacy = true
	if base := len(configMap) - digestLength - 1; base > 0 && configMap[base] == '-' && isDigest(configMap[base+1:]) {
		configMap, found.Legacy = configMap[:base], false
	}
	if found.Server, ok = strings.CutSuffix(configMap, runConfigSuffix); ok {
		found.Writer = managers.RunConfig
	} else if found.Server, ok = strings.CutSuffix(configMap, inlineAuthzSuffix); ok {
		found.Writer = managers.Authz
	}
	return found, ok && found.Server != ""
}

// contentDigest identifies the data of a ConfigMap.
func contentDigest(data map[string]string) string {
	// A map of strings can always be encoded, and its keys are sorted.
	text, _ := json.Marshal(data)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:digestLength]
}

func isDigest(text string) bool {
	return len(text) == digestLength && strings.Trim(text, "0123456789abcdef") == ""
}

// RunnerName is the name of the proxy's ServiceAccount, of its Role and of the RoleBinding between them.
func RunnerName(name string) string { return name + "-proxy-runner" }

// BackendServiceAccountName is the name of the ServiceAccount that is made for the backend's pods when the
// MCPServer names none.
func BackendServiceAccountName(name string) string { return name + "-sa" }

// URL is where clients inside the cluster reach the MCPServer.
func URL(server *v1beta1.MCPServer) string {
	s := settingsOf(server)
	base := fmt.Sprintf("http://%s.%s.svc.cluster.local:%d",
		ProxyServiceName(server.Name), server.Namespace, s.proxyPort)
	if s.proxyMode == v1beta1.TransportSSE {
		return base + "/sse#" + server.Name
	}
	return base + "/mcp"
}
