// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"encoding/json"
	"fmt"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

const (
	// SchemaVersion is the version of the document's schema that the proxyrunner reads.
	SchemaVersion = "v0.1.0"
	// Generation is the generation in every proxyrunner's RunConfig. It is the lowest that leaves the runner's generation
	// gate in force (0 turns the gate off), and below every gate that is ever set; and as it never changes it never rolls
	// a proxy.
	Generation = 1
	// Key under which the document is stored in its ConfigMap.
	Key = "runconfig.json"
)

// RunConfig is the document. Fields stand in the order of ToolHive's own struct.
type RunConfig struct {
	SchemaVersion string            `json:"schema_version"`
	Generation    int64             `json:"mcpserver_generation,omitempty"`
	Image         string            `json:"image"`
	CmdArgs       []string          `json:"cmd_args,omitempty"`
	Name          string            `json:"name"`
	ContainerName string            `json:"container_name,omitempty"`
	BaseName      string            `json:"base_name,omitempty"`
	Transport     v1beta1.Transport `json:"transport"`
	// Host is the address the proxy listens on.
	Host string `json:"host"`
	// Port is the port the proxy listens on.
	Port int32 `json:"port"`
	// TargetPort is the port of the MCP server.
	TargetPort int32 `json:"target_port,omitempty"`
	// TargetHost is the host of the MCP server. Without it a runner that leaves the StatefulSet alone does
	// not know where to send requests to. Stdio needs none.
	TargetHost        string             `json:"target_host,omitempty"`
	PermissionProfile *PermissionProfile `json:"permission_profile"`
	EnvVars           map[string]string  `json:"env_vars,omitempty"`
	// Volumes as host-path:container-path[:ro].
	Volumes         []string          `json:"volumes,omitempty"`
	ContainerLabels map[string]string `json:"container_labels,omitempty"`
	// OIDC is nil where the proxy lets everybody in.
	OIDC          *OIDC          `json:"oidc_config,omitempty"`
	TokenExchange *TokenExchange `json:"token_exchange_config,omitempty"`
	Authz         *Authz         `json:"authz_config,omitempty"`
	Audit         *Audit         `json:"audit_config,omitempty"`
	Telemetry     *Telemetry     `json:"telemetry_config,omitempty"`
	// RateLimit is the MCPServer's own configuration, with refill periods as Go writes durations.
	RateLimit *v1beta1.RateLimitConfig `json:"rate_limit_config,omitempty"`
	// RateLimitNamespace keeps buckets of MCPServers of one name apart.
	RateLimitNamespace string `json:"rate_limit_namespace,omitempty"`
	TrustProxyHeaders  bool   `json:"trust_proxy_headers,omitempty"`
	// MaxRequestBodySize is in bytes; 0 leaves the runner its default of 8 MiB.
	MaxRequestBodySize int64 `json:"max_request_body_size,omitempty"`
	// ProxyReadTimeout is a duration as Go writes it; empty leaves the runner its default of 30 seconds.
	ProxyReadTimeout string `json:"proxy_read_timeout,omitempty"`
	// ProxyMode is the protocol that clients speak with the proxy.
	ProxyMode v1beta1.Transport `json:"proxy_mode,omitempty"`
	// CABundle is OIDC.CACertPath, and JWKSAuthTokenFile is OIDC.AuthTokenFile.
	CABundle          string `json:"thv_ca_bundle,omitempty"`
	JWKSAuthTokenFile string `json:"jwks_auth_token_file,omitempty"`
	// ToolsFilter are the tools that clients see, by the names that ToolsOverride gives them; empty for all.
	ToolsFilter []string `json:"tools_filter,omitempty"`
	// ToolsOverride by the names that the MCP server has for its tools.
	ToolsOverride      map[string]ToolOverride `json:"tools_override,omitempty"`
	ValidatingWebhooks []Webhook               `json:"validating_webhooks,omitempty"`
	MutatingWebhooks   []Webhook               `json:"mutating_webhooks,omitempty"`
	EndpointPrefix     string                  `json:"endpoint_prefix,omitempty"`
	// AuthServer is an authorization server within the proxy; nil for none.
	AuthServer any      `json:"embedded_auth_server_config,omitempty"`
	Scaling    *Scaling `json:"scaling_config,omitempty"`
}

// Audit configures audit logging.
type Audit struct {
	DetectApplicationErrors bool `json:"detectApplicationErrors"`
	// MaxDataSize is the most of a request or response that is logged, in bytes.
	MaxDataSize int `json:"maxDataSize"`
}

// DefaultAudit returns the configuration of audit logging when an MCPServer turns it on.
func DefaultAudit() *Audit {
	return &Audit{DetectApplicationErrors: true, MaxDataSize: 1024}
}

// Scaling is the configuration of a proxy with several replicas.
type Scaling struct {
	SessionRedis *SessionRedis `json:"session_redis,omitempty"`
}

// SessionRedis is the session store. Its password is not part of the document.
type SessionRedis struct {
	Address   string `json:"address,omitempty"`
	DB        int32  `json:"db,omitempty"`
	KeyPrefix string `json:"key_prefix,omitempty"`
	// TLS is nil where the proxy speaks plain text with the store.
	TLS *RedisTLS `json:"tls,omitempty"`
}

// RedisTLS is how the proxy checks the certificate of the session store. The zero value trusts the certificate
// authorities of the proxy's image.
type RedisTLS struct {
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
	// CACertFile is a file in the proxy's container.
	CACertFile string `json:"caCertFile,omitempty"`
}

// JSON returns the document as it is stored: two spaces of indentation and no line break at the end.
func (c *RunConfig) JSON() (string, error) {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", fmt.Errorf("RunConfig: %w", err)
	}
	return string(data), nil
}
