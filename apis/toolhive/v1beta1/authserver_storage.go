// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// AuthServerStorageType is where an embedded authorization server keeps its state.
type AuthServerStorageType string

const (
	// AuthServerStorageTypeMemory is the memory of each proxy pod.
	AuthServerStorageTypeMemory AuthServerStorageType = "memory"
	// AuthServerStorageTypeRedis is Redis, which all proxy pods share.
	AuthServerStorageTypeRedis AuthServerStorageType = "redis"
)

// AuthServerStorageConfig is where registrations, sessions and codes are kept.
type AuthServerStorageConfig struct {
	// type is the kind of store.
	// +kubebuilder:validation:Enum=memory;redis
	// +kubebuilder:default=memory
	// +optional
	Type AuthServerStorageType `json:"type,omitempty"`
	// redis is the connection when type is redis.
	// +optional
	Redis *RedisStorageConfig `json:"redis,omitempty"`
	// maxDCRClients is how many clients may have registered themselves; 10000 when unset, and any number with 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxDCRClients *int32 `json:"maxDCRClients,omitempty"`
}

// RedisStorageConfig is a connection to Redis: to one address, or through Sentinel.
//
// +kubebuilder:validation:XValidation:rule="(has(self.addr) && self.addr.size() > 0) != has(self.sentinelConfig)",message="exactly one of addr or sentinelConfig must be set"
// +kubebuilder:validation:XValidation:rule="!(has(self.clusterMode) && self.clusterMode) || (has(self.addr) && self.addr.size() > 0)",message="clusterMode requires addr to be set"
type RedisStorageConfig struct {
	// addr of Redis, as host:port. It excludes sentinelConfig.
	// +optional
	Addr string `json:"addr,omitempty"`
	// clusterMode says that addr is that of a Redis Cluster.
	// +optional
	ClusterMode bool `json:"clusterMode,omitempty"`
	// sentinelConfig finds Redis through Sentinel.
	// +optional
	SentinelConfig *RedisSentinelConfig `json:"sentinelConfig,omitempty"`
	// aclUserConfig are the credentials.
	// +required
	ACLUserConfig RedisACLUserConfig `json:"aclUserConfig"`
	// dialTimeout is how long connecting may take, as a Go duration.
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:default="5s"
	// +optional
	DialTimeout string `json:"dialTimeout,omitempty"`
	// readTimeout is how long an answer may take, as a Go duration.
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:default="3s"
	// +optional
	ReadTimeout string `json:"readTimeout,omitempty"`
	// writeTimeout is how long sending may take, as a Go duration.
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:default="3s"
	// +optional
	WriteTimeout string `json:"writeTimeout,omitempty"`
	// tls makes the proxy speak TLS with Redis.
	// +optional
	TLS *RedisTLSConfig `json:"tls,omitempty"`
	// sentinelTls makes the proxy speak TLS with Sentinel.
	// +optional
	SentinelTLS *RedisTLSConfig `json:"sentinelTls,omitempty"`
}

// RedisSentinelConfig finds the master through Redis Sentinel.
type RedisSentinelConfig struct {
	// masterName is the name of the master.
	// +required
	MasterName string `json:"masterName"`
	// sentinelAddrs of Sentinel, as host:port.
	// +listType=atomic
	// +optional
	SentinelAddrs []string `json:"sentinelAddrs,omitempty"`
	// sentinelService is the Service of Sentinel. It excludes sentinelAddrs.
	// +optional
	SentinelService *SentinelServiceRef `json:"sentinelService,omitempty"`
	// db is the number of the Redis database.
	// +kubebuilder:default=0
	// +optional
	DB int32 `json:"db,omitempty"`
}

// SentinelServiceRef names the Service of Redis Sentinel.
type SentinelServiceRef struct {
	// name of the Service.
	// +required
	Name string `json:"name"`
	// namespace of the Service; the MCPServer's when unset.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// port of the Service.
	// +kubebuilder:default=26379
	// +optional
	Port int32 `json:"port,omitempty"`
}

// RedisACLUserConfig are the credentials for Redis.
type RedisACLUserConfig struct {
	// usernameSecretRef is the key of a Secret that holds the user name; none for Redis without users.
	// +optional
	UsernameSecretRef *SecretKeyRef `json:"usernameSecretRef,omitempty"`
	// passwordSecretRef is the key of a Secret that holds the password.
	// +required
	PasswordSecretRef SecretKeyRef `json:"passwordSecretRef"`
}
