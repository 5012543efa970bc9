// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MCPServer runs one MCP server on Kubernetes: a backend StatefulSet with the server itself, and in front
// of it a Deployment of ToolHive's proxyrunner that clients talk to through one Service.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=mcpservers,singular=mcpserver,scope=Namespaced,categories=toolhive
// +kubebuilder:metadata:labels="toolhive.stacklok.dev/auto-migrate-storage-version=true"
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Replicas",type="integer",JSONPath=".status.readyReplicas"
// +kubebuilder:printcolumn:name="URL",type="string",JSONPath=".status.url"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type MCPServer struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for.
	// +optional
	Spec MCPServerSpec `json:"spec,omitempty"`
	// status is what the operator observed.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status MCPServerStatus `json:"status,omitempty"`
}

// MCPServerList is a list of MCPServers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type MCPServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MCPServer `json:"items"`
}

// Transport is the protocol that the MCP server itself speaks.
type Transport string

const (
	// TransportStdio is a server on standard input and output; the proxy attaches to its container.
	TransportStdio Transport = "stdio"
	// TransportStreamableHTTP is MCP's streamable HTTP.
	TransportStreamableHTTP Transport = "streamable-http"
	// TransportSSE is MCP's older HTTP with server-sent events.
	TransportSSE Transport = "sse"
)

// MCPServerSpec is what the user asks for.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.authzConfig) && has(self.authzConfigRef))",message="authzConfig and authzConfigRef are mutually exclusive; use authzConfigRef to reference a shared MCPAuthzConfig"
// +kubebuilder:validation:XValidation:rule="!has(self.rateLimiting) || (has(self.sessionStorage) && self.sessionStorage.provider == 'redis')",message="rateLimiting requires sessionStorage with provider 'redis'"
// +kubebuilder:validation:XValidation:rule="!(has(self.rateLimiting) && has(self.rateLimiting.perUser)) || has(self.oidcConfigRef) || has(self.externalAuthConfigRef)",message="rateLimiting.perUser requires authentication (oidcConfigRef or externalAuthConfigRef)"
// +kubebuilder:validation:XValidation:rule="!has(self.rateLimiting) || !has(self.rateLimiting.tools) || self.rateLimiting.tools.all(t, !has(t.perUser)) || has(self.oidcConfigRef) || has(self.externalAuthConfigRef)",message="per-tool perUser rate limiting requires authentication (oidcConfigRef or externalAuthConfigRef)"
type MCPServerSpec struct {
	// image is the container image of the MCP server.
	// +required
	Image string `json:"image"`

	// transport is the protocol that the MCP server speaks.
	// +kubebuilder:validation:Enum=stdio;streamable-http;sse
	// +kubebuilder:default=stdio
	// +optional
	Transport Transport `json:"transport,omitempty"`

	// proxyMode is the protocol that the proxy offers to clients when transport is stdio. With any other
	// transport the proxy offers that transport.
	// +kubebuilder:validation:Enum=sse;streamable-http
	// +kubebuilder:default=streamable-http
	// +optional
	ProxyMode Transport `json:"proxyMode,omitempty"`

	// proxyPort is the port of the proxy container and of the proxy Service.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:default=8080
	// +optional
	ProxyPort int32 `json:"proxyPort,omitempty"`

	// mcpPort is the port on which the MCP server listens with an HTTP transport; 8080 when unset. It has
	// no effect with stdio.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	MCPPort int32 `json:"mcpPort,omitempty"`

	// args are arguments of the MCP server's container. They follow those of podTemplateSpec.
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`

	// env are plain environment variables of the MCP server's container. They win over secrets, and
	// secrets win over podTemplateSpec, where a name occurs more than once.
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []EnvVar `json:"env,omitempty"`

	// volumes are host paths mounted into the proxy's container, and not into the MCP server's, as in ToolHive. Those of the MCP
	// server's container are set in podTemplateSpec, as spec.volumes and as volumeMounts of the container mcp.
	// +listType=map
	// +listMapKey=name
	// +optional
	Volumes []Volume `json:"volumes,omitempty"`

	// resources are the resource requirements of the proxy's container, and not of the MCP server's, as in ToolHive. Those of the
	// MCP server's container are set in podTemplateSpec, as resources of the container mcp.
	// +optional
	Resources ResourceRequirements `json:"resources,omitempty"`

	// secrets are keys of Secrets given to the MCP server's container as environment variables.
	// +listType=map
	// +listMapKey=name
	// +listMapKey=key
	// +optional
	Secrets []SecretRef `json:"secrets,omitempty"`

	// serviceAccount is the name of an existing ServiceAccount for the MCP server's pod. When unset, one
	// called <name>-sa is made. When empty, podTemplateSpec chooses it.
	// +optional
	ServiceAccount *string `json:"serviceAccount,omitempty"`

	// permissionProfile is the network permission profile recorded in the RunConfig. Kubernetes does not
	// enforce it.
	// +optional
	PermissionProfile *PermissionProfileRef `json:"permissionProfile,omitempty"`

	// podTemplateSpec is a PodTemplateSpec merged into the MCP server's pod. The server's own container is
	// the one called mcp; all others run beside it.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +optional
	PodTemplateSpec *runtime.RawExtension `json:"podTemplateSpec,omitempty"`

	// resourceOverrides are additions to the objects made for this MCPServer. Keys that the operator
	// sets itself cannot be overridden.
	// +optional
	ResourceOverrides *ResourceOverrides `json:"resourceOverrides,omitempty"`

	// oidcConfigRef names the MCPOIDCConfig by which clients are authenticated.
	// +optional
	OIDCConfigRef *MCPOIDCConfigReference `json:"oidcConfigRef,omitempty"`

	// authzConfig is the authorization policy of this MCPServer.
	// +optional
	AuthzConfig *AuthzConfigRef `json:"authzConfig,omitempty"`

	// authzConfigRef names a shared MCPAuthzConfig.
	// +optional
	AuthzConfigRef *MCPAuthzConfigReference `json:"authzConfigRef,omitempty"`

	// audit configures audit logging in the proxy.
	// +optional
	Audit *AuditConfig `json:"audit,omitempty"`

	// toolConfigRef names the MCPToolConfig that filters and renames tools.
	// +optional
	ToolConfigRef *ToolConfigRef `json:"toolConfigRef,omitempty"`

	// externalAuthConfigRef names the MCPExternalAuthConfig for outgoing authentication.
	// +optional
	ExternalAuthConfigRef *ExternalAuthConfigRef `json:"externalAuthConfigRef,omitempty"`

	// authServerRef names the configuration of an authorization server embedded in the proxy.
	// +optional
	AuthServerRef *AuthServerRef `json:"authServerRef,omitempty"`

	// webhookConfigRef names the MCPWebhookConfig whose webhooks the proxy calls.
	// +optional
	WebhookConfigRef *WebhookConfigRef `json:"webhookConfigRef,omitempty"`

	// telemetryConfigRef names the MCPTelemetryConfig of the proxy.
	// +optional
	TelemetryConfigRef *MCPTelemetryConfigReference `json:"telemetryConfigRef,omitempty"`

	// trustProxyHeaders makes the proxy honour X-Forwarded-* headers.
	// +kubebuilder:default=false
	// +optional
	TrustProxyHeaders bool `json:"trustProxyHeaders,omitempty"`

	// maxRequestBodySize is the largest request body that the proxy accepts, in bytes; 8 MiB when unset or 0. The proxy
	// answers a larger one with 413.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxRequestBodySize int64 `json:"maxRequestBodySize,omitempty"`

	// proxyReadTimeout is how long the proxy waits for a whole request, as a duration such as 1m30s; 30 seconds when unset
	// or 0. It is a string here, since the API server also accepts durations that Go does not parse, such as 2d, and one bad
	// value must not make a whole list of MCPServers undecodable.
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="proxyReadTimeout must be non-negative"
	// +optional
	ProxyReadTimeout string `json:"proxyReadTimeout,omitempty"`

	// endpointPrefix is a path prefix in the endpoint URLs that the SSE transport announces.
	// +optional
	EndpointPrefix string `json:"endpointPrefix,omitempty"`

	// groupRef names the MCPGroup that this MCPServer belongs to.
	// +optional
	GroupRef *MCPGroupRef `json:"groupRef,omitempty"`

	// sessionAffinity is the session affinity of the proxy Service: with ClientIP, the requests of a client address reach the same
	// proxy pod. With transport streamable-http, the Service between the proxy and the MCP server has None too if this is None, so
	// that several backend pods share the requests of a proxy pod; otherwise one of them gets all. None is for MCP servers that
	// keep no sessions: a session that reaches another backend pod is not found there.
	// +kubebuilder:validation:Enum=ClientIP;None
	// +kubebuilder:default=ClientIP
	// +optional
	SessionAffinity string `json:"sessionAffinity,omitempty"`

	// replicas is the number of proxy pods. When unset, the operator leaves the number to others, such as
	// a HorizontalPodAutoscaler. It is capped at 1 with transport stdio.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// backendReplicas is the number of pods of the MCP server. When unset, the operator leaves the number
	// to others. It is capped at 1 with transport stdio.
	// +kubebuilder:validation:Minimum=0
	// +optional
	BackendReplicas *int32 `json:"backendReplicas,omitempty"`

	// sessionStorage is where the proxy keeps sessions; several proxy pods need a shared store.
	// +optional
	SessionStorage *SessionStorageConfig `json:"sessionStorage,omitempty"`

	// rateLimiting limits the rate of requests. It needs sessionStorage with provider redis.
	// +optional
	RateLimiting *RateLimitConfig `json:"rateLimiting,omitempty"`

	// UnknownFields are the paths, below spec, of fields that this type does not have or that were given twice.
	// UnmarshalJSON sets it; it is not part of the API.
	// +listType=atomic
	UnknownFields []string `json:"-"`

	// Malformed names the value of the spec that could not be read into this type; it is empty for none. UnmarshalJSON sets
	// it; it is not part of the API.
	Malformed string `json:"-"`
}

// EnvVar is a plain environment variable.
type EnvVar struct {
	// name of the variable.
	// +required
	Name string `json:"name"`
	// value of the variable, without line breaks.
	// +required
	Value string `json:"value"`
}

// Volume is a path of the node mounted into the proxy's pod.
type Volume struct {
	// name of the volume.
	// +required
	Name string `json:"name"`
	// hostPath is the path on the node.
	// +required
	HostPath string `json:"hostPath"`
	// mountPath is the path in the container.
	// +required
	MountPath string `json:"mountPath"`
	// readOnly mounts the volume read-only.
	// +kubebuilder:default=false
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
}

// ResourceRequirements are compute resources of a container.
type ResourceRequirements struct {
	// limits are the most that the container may use.
	// +optional
	Limits ResourceList `json:"limits,omitempty"`
	// requests are what the container is guaranteed.
	// +optional
	Requests ResourceList `json:"requests,omitempty"`
}

// ResourceList is an amount of each resource, as Kubernetes quantities.
type ResourceList struct {
	// cpu, for example 500m.
	// +optional
	CPU string `json:"cpu,omitempty"`
	// memory, for example 64Mi.
	// +optional
	Memory string `json:"memory,omitempty"`
}

// SecretRef is one key of a Secret given to a container as an environment variable.
type SecretRef struct {
	// name of the Secret.
	// +required
	Name string `json:"name"`
	// key in the Secret.
	// +required
	Key string `json:"key"`
	// targetEnvName is the name of the environment variable; the key when unset.
	// +optional
	TargetEnvName string `json:"targetEnvName,omitempty"`
}

const (
	// PermissionProfileTypeBuiltin is a profile known to ToolHive by name.
	PermissionProfileTypeBuiltin = "builtin"
	// PermissionProfileTypeConfigMap is a profile in a ConfigMap.
	PermissionProfileTypeConfigMap = "configmap"
)

// PermissionProfileRef names a permission profile.
type PermissionProfileRef struct {
	// type is where the permission profile is stored.
	// +kubebuilder:validation:Enum=builtin;configmap
	// +kubebuilder:default=builtin
	// +required
	Type string `json:"type"`
	// name of the built-in profile (none, network, stdio) or of the ConfigMap.
	// +required
	Name string `json:"name"`
	// key in the ConfigMap.
	// +optional
	Key string `json:"key,omitempty"`
}

// ResourceOverrides are additions to the objects made for an MCPServer.
type ResourceOverrides struct {
	// proxyDeployment adds to the proxy's Deployment.
	// +optional
	ProxyDeployment *ProxyDeploymentOverrides `json:"proxyDeployment,omitempty"`
	// proxyService adds to the proxy's Service.
	// +optional
	ProxyService *ResourceMetadataOverrides `json:"proxyService,omitempty"`
}

// ProxyDeploymentOverrides are additions to the proxy's Deployment.
type ProxyDeploymentOverrides struct {
	ResourceMetadataOverrides `json:",inline"`

	// podTemplateMetadataOverrides adds to the metadata of the pod template.
	// +optional
	PodTemplateMetadataOverrides *ResourceMetadataOverrides `json:"podTemplateMetadataOverrides,omitempty"`
	// env are environment variables of the proxy's container. They win over those that the operator sets
	// by default, such as HOME, but not over those by which the operator steers the proxy.
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []EnvVar `json:"env,omitempty"`
	// imagePullSecrets of the proxy's pod and of both ServiceAccounts. The MCP server's pods have those of their ServiceAccount,
	// unless podTemplateSpec has a list of its own or serviceAccount names another ServiceAccount.
	// +listType=atomic
	// +optional
	ImagePullSecrets []LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// nodeSelector are labels that the node of a proxy pod must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations of the proxy's pods.
	// +listType=atomic
	// +optional
	Tolerations []Toleration `json:"tolerations,omitempty"`
	// affinity of the proxy's pods.
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`
}

// ResourceMetadataOverrides are labels and annotations to add.
type ResourceMetadataOverrides struct {
	// annotations to add.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// labels to add.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// LocalObjectReference names an object of the same namespace. It has the shape of the core type of that
// name, which would make these API types depend on more than apimachinery.
//
// +structType=atomic
type LocalObjectReference struct {
	// name of the object.
	// +kubebuilder:default=""
	// +optional
	Name string `json:"name,omitempty"`
}

// MCPOIDCConfigReference names an MCPOIDCConfig and what this MCPServer expects of tokens.
type MCPOIDCConfigReference struct {
	// name of the MCPOIDCConfig.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
	// audience that a token must carry.
	// +kubebuilder:validation:MinLength=1
	// +required
	Audience string `json:"audience"`
	// scopes announced in the protected resource metadata.
	// +listType=atomic
	// +optional
	Scopes []string `json:"scopes,omitempty"`
	// resourceUrl announced in the protected resource metadata.
	// +optional
	ResourceURL string `json:"resourceUrl,omitempty"`
}

const (
	// AuthzConfigTypeConfigMap is an authorization policy in a ConfigMap.
	AuthzConfigTypeConfigMap = "configMap"
	// AuthzConfigTypeInline is an authorization policy in the MCPServer itself.
	AuthzConfigTypeInline = "inline"
)

// AuthzConfigRef is an authorization policy in Cedar's language.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'configMap' ? has(self.configMap) : !has(self.configMap)",message="configMap must be set when type is 'configMap', and must not be set otherwise"
// +kubebuilder:validation:XValidation:rule="self.type == 'inline' ? has(self.inline) : !has(self.inline)",message="inline must be set when type is 'inline', and must not be set otherwise"
type AuthzConfigRef struct {
	// type is where the policy is stored.
	// +kubebuilder:validation:Enum=configMap;inline
	// +kubebuilder:default=configMap
	// +required
	Type string `json:"type"`
	// configMap holds the policy when type is configMap.
	// +optional
	ConfigMap *ConfigMapAuthzRef `json:"configMap,omitempty"`
	// inline is the policy when type is inline.
	// +optional
	Inline *InlineAuthzConfig `json:"inline,omitempty"`
	// groupClaimName is the token claim that holds a user's groups.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	GroupClaimName string `json:"groupClaimName,omitempty"`
	// roleClaimName is the token claim that holds a user's roles.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	RoleClaimName string `json:"roleClaimName,omitempty"`
	// groupEntityType is the Cedar entity type of groups.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	// +optional
	GroupEntityType string `json:"groupEntityType,omitempty"`
}

// ConfigMapAuthzRef names the ConfigMap that holds an authorization policy.
type ConfigMapAuthzRef struct {
	// name of the ConfigMap.
	// +required
	Name string `json:"name"`
	// key in the ConfigMap.
	// +kubebuilder:default=authz.json
	// +optional
	Key string `json:"key,omitempty"`
}

// InlineAuthzConfig is an authorization policy.
type InlineAuthzConfig struct {
	// policies in Cedar's language.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +required
	Policies []string `json:"policies"`
	// entitiesJson are Cedar entities, as a JSON list.
	// +kubebuilder:default="[]"
	// +optional
	EntitiesJSON string `json:"entitiesJson,omitempty"`
	// primaryUpstreamProvider is deprecated and has no effect on an MCPServer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +optional
	PrimaryUpstreamProvider string `json:"primaryUpstreamProvider,omitempty"`
}

// MCPAuthzConfigReference names an MCPAuthzConfig.
type MCPAuthzConfigReference struct {
	// name of the MCPAuthzConfig.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// AuditConfig configures audit logging.
type AuditConfig struct {
	// enabled turns audit logging on.
	// +kubebuilder:default=false
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// ToolConfigRef names an MCPToolConfig.
type ToolConfigRef struct {
	// name of the MCPToolConfig.
	// +required
	Name string `json:"name"`
}

// ExternalAuthConfigRef names an MCPExternalAuthConfig.
type ExternalAuthConfigRef struct {
	// name of the MCPExternalAuthConfig.
	// +required
	Name string `json:"name"`
}

// AuthServerRef names the configuration of an embedded authorization server.
type AuthServerRef struct {
	// kind of the configuration.
	// +kubebuilder:validation:Enum=MCPExternalAuthConfig
	// +kubebuilder:default=MCPExternalAuthConfig
	// +required
	Kind string `json:"kind"`
	// name of the configuration.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// WebhookConfigRef names an MCPWebhookConfig.
type WebhookConfigRef struct {
	// name of the MCPWebhookConfig.
	// +required
	Name string `json:"name"`
}

// MCPTelemetryConfigReference names an MCPTelemetryConfig.
type MCPTelemetryConfigReference struct {
	// name of the MCPTelemetryConfig.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
	// serviceName reported in telemetry; the MCPServer's name when unset.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
}

// MCPGroupRef names an MCPGroup.
type MCPGroupRef struct {
	// name of the MCPGroup.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

const (
	// SessionStorageMemory keeps sessions in each proxy pod.
	SessionStorageMemory = "memory"
	// SessionStorageRedis keeps sessions in Redis.
	SessionStorageRedis = "redis"
)

// SessionStorageConfig is where the proxy keeps sessions.
//
// +kubebuilder:validation:XValidation:rule="self.provider == 'redis' ? has(self.address) : true",message="address is required"
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || self.provider == 'redis'",message="tls is only supported when provider is redis"
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !has(self.tls.caCertSecretRef) || !has(self.tls.insecureSkipVerify) || !self.tls.insecureSkipVerify",message="tls.insecureSkipVerify disables certificate verification, so tls.caCertSecretRef would be ignored; set only one"
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !has(self.tls.caCertSecretRef) || (size(self.tls.caCertSecretRef.name) > 0 && size(self.tls.caCertSecretRef.key) > 0)",message="tls.caCertSecretRef requires a non-empty name and key"
type SessionStorageConfig struct {
	// provider is the kind of store.
	// +kubebuilder:validation:Enum=memory;redis
	// +required
	Provider string `json:"provider"`
	// address of Redis, as host:port.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Address string `json:"address,omitempty"`
	// db is the number of the Redis database.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	// +optional
	DB int32 `json:"db,omitempty"`
	// keyPrefix of all keys in Redis.
	// +optional
	KeyPrefix string `json:"keyPrefix,omitempty"`
	// passwordRef is the key of a Secret that holds the password of Redis.
	// +optional
	PasswordRef *SecretKeyRef `json:"passwordRef,omitempty"`
	// tls makes the proxy speak TLS with Redis; {} trusts the certificate authorities of the proxy's image.
	// +optional
	TLS *RedisTLSConfig `json:"tls,omitempty"`
}

// RedisTLSConfig is how the proxy checks the certificate of Redis.
type RedisTLSConfig struct {
	// insecureSkipVerify turns the check off. It excludes caCertSecretRef.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
	// caCertSecretRef is the key of a Secret that holds the certificates, in PEM, of the authorities to trust.
	// +optional
	CACertSecretRef *SecretKeyRef `json:"caCertSecretRef,omitempty"`
}

// SecretKeyRef names one key of a Secret.
type SecretKeyRef struct {
	// name of the Secret.
	// +required
	Name string `json:"name"`
	// key in the Secret.
	// +required
	Key string `json:"key"`
}

// RateLimitConfig limits the rate of requests.
//
// +kubebuilder:validation:XValidation:rule="has(self.shared) || has(self.perUser) || (has(self.tools) && size(self.tools) > 0)",message="at least one of shared, perUser, or tools must be configured"
type RateLimitConfig struct {
	// shared is one bucket for all clients.
	// +optional
	Shared *RateLimitBucket `json:"shared,omitempty"`
	// perUser is one bucket for each authenticated user.
	// +optional
	PerUser *RateLimitBucket `json:"perUser,omitempty"`
	// tools are buckets of single tools.
	// +listType=map
	// +listMapKey=name
	// +optional
	Tools []ToolRateLimitConfig `json:"tools,omitempty"`
}

// RateLimitBucket is a token bucket.
type RateLimitBucket struct {
	// maxTokens is the size of the bucket.
	// +kubebuilder:validation:Minimum=1
	// +required
	MaxTokens int32 `json:"maxTokens"`
	// refillPeriod is the time in which an empty bucket fills up, as a Go duration such as 1m30s. It is a
	// string here, since the schema admits any string and one bad value must not make a whole list of
	// MCPServers undecodable.
	// +required
	RefillPeriod string `json:"refillPeriod"`
}

// ToolRateLimitConfig limits the rate of calls of one tool.
//
// +kubebuilder:validation:XValidation:rule="has(self.shared) || has(self.perUser)",message="at least one of shared or perUser must be configured"
type ToolRateLimitConfig struct {
	// name of the tool.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
	// shared is one bucket for all clients.
	// +optional
	Shared *RateLimitBucket `json:"shared,omitempty"`
	// perUser is one bucket for each authenticated user.
	// +optional
	PerUser *RateLimitBucket `json:"perUser,omitempty"`
}
