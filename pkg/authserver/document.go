// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

// SchemaVersion is the version of the block's schema that the proxyrunner reads.
const SchemaVersion = "v0.1.0"

// Document is the block embedded_auth_server_config of the RunConfig. Fields stand in the order of ToolHive's own struct, so
// that the bytes are the same. It holds names of files and of environment variables, and no secret.
type Document struct {
	SchemaVersion                string          `json:"schema_version"`
	Issuer                       string          `json:"issuer"`
	AuthorizationEndpointBaseURL string          `json:"authorization_endpoint_base_url,omitempty"`
	SigningKeys                  *SigningKeys    `json:"signing_key_config,omitempty"`
	HMACSecretFiles              []string        `json:"hmac_secret_files,omitempty"`
	TokenLifespans               *TokenLifespans `json:"token_lifespans,omitempty"`
	// Upstreams is [] and not null where there is none.
	Upstreams                     []Upstream `json:"upstreams"`
	ScopesSupported               []string   `json:"scopes_supported,omitempty"`
	BaselineClientScopes          []string   `json:"baseline_client_scopes,omitempty"`
	AllowedAudiences              []string   `json:"allowed_audiences"`
	Storage                       *Storage   `json:"storage,omitempty"`
	DisableUpstreamTokenInjection bool       `json:"disable_upstream_token_injection,omitempty"`
	CIMD                          *CIMD      `json:"cimd,omitempty"`
	InsecureAllowHTTP             bool       `json:"insecure_allow_http,omitempty"`

	TrustedIssuers                            []TrustedIssuer        `json:"trusted_issuers,omitempty"`
	AllowConfidentialClientRegistration       bool                   `json:"allow_confidential_client_registration,omitempty"`
	AllowPrivateKeyJWTRegistration            bool                   `json:"allow_private_key_jwt_registration,omitempty"`
	ForceConfidentialRedirectURIs             []string               `json:"force_confidential_redirect_uris,omitempty"`
	InsecureAllowConfidentialOverLoopbackHTTP bool                   `json:"insecure_allow_confidential_over_loopback_http,omitempty"`
	DelegateClients                           []DelegateClient       `json:"delegate_clients,omitempty"`
	InboundGrants                             *InboundGrants         `json:"inbound_grants,omitempty"`
	TLSListener                               *TLSListener           `json:"tls_listener,omitempty"`
	RegistrationRateLimit                     *RegistrationRateLimit `json:"registration_rate_limit,omitempty"`
}

// SigningKeys are files with keys in PEM: the first signs, the others verify.
type SigningKeys struct {
	Directory     string   `json:"key_dir,omitempty"`
	SigningKey    string   `json:"signing_key_file,omitempty"`
	FallbackFiles []string `json:"fallback_key_files,omitempty"`
}

// TokenLifespans are durations as Go writes them; empty leaves the runner its default.
type TokenLifespans struct {
	AccessToken  string `json:"access_token_lifespan,omitempty"`
	RefreshToken string `json:"refresh_token_lifespan,omitempty"`
	AuthCode     string `json:"auth_code_lifespan,omitempty"`
}

// Upstream is one identity provider.
type Upstream struct {
	Name   string          `json:"name,omitempty"`
	Type   string          `json:"type"`
	OIDC   *OIDCUpstream   `json:"oidc_config,omitempty"`
	OAuth2 *OAuth2Upstream `json:"oauth2_config,omitempty"`
}

// OIDCUpstream is an identity provider that the runner discovers from its issuer.
type OIDCUpstream struct {
	IssuerURL                     string            `json:"issuer_url"`
	ClientID                      string            `json:"client_id"`
	ClientSecretEnvVar            string            `json:"client_secret_env_var,omitempty"`
	RedirectURI                   string            `json:"redirect_uri,omitempty"`
	Scopes                        []string          `json:"scopes,omitempty"`
	UserInfoOverride              *UserInfo         `json:"userinfo_override,omitempty"`
	AdditionalAuthorizationParams map[string]string `json:"additional_authorization_params,omitempty"`
	AdditionalTokenParams         map[string]string `json:"additional_token_params,omitempty"`
	OmitScopeOnRefresh            bool              `json:"omit_scope_on_refresh,omitempty"`
	SubjectClaim                  string            `json:"subject_claim,omitempty"`
	DCR                           *DCR              `json:"dcr_config,omitempty"`
	CAFilePath                    string            `json:"ca_file_path,omitempty"`
	AllowPrivateIPs               bool              `json:"allow_private_ips,omitempty"`
}

// OAuth2Upstream is an identity provider with given endpoints.
type OAuth2Upstream struct {
	AuthorizationEndpoint         string                `json:"authorization_endpoint"`
	TokenEndpoint                 string                `json:"token_endpoint"`
	ClientID                      string                `json:"client_id"`
	ClientSecretEnvVar            string                `json:"client_secret_env_var,omitempty"`
	TokenEndpointAuthMethod       string                `json:"token_endpoint_auth_method,omitempty"`
	RedirectURI                   string                `json:"redirect_uri,omitempty"`
	Scopes                        []string              `json:"scopes,omitempty"`
	UserInfo                      *UserInfo             `json:"userinfo,omitempty"`
	TokenResponseMapping          *TokenResponseMapping `json:"token_response_mapping,omitempty"`
	IdentityFromToken             *IdentityFromToken    `json:"identity_from_token,omitempty"`
	AdditionalAuthorizationParams map[string]string     `json:"additional_authorization_params,omitempty"`
	AdditionalTokenParams         map[string]string     `json:"additional_token_params,omitempty"`
	OmitScopeOnRefresh            bool                  `json:"omit_scope_on_refresh,omitempty"`
	DCR                           *DCR                  `json:"dcr_config,omitempty"`
	CAFilePath                    string                `json:"ca_file_path,omitempty"`
	AllowPrivateIPs               bool                  `json:"allow_private_ips,omitempty"`
	InsecureAllowHTTP             bool                  `json:"insecure_allow_http,omitempty"`
}

// DCR makes the runner register itself as a client of the identity provider when it starts.
type DCR struct {
	DiscoveryURL         string `json:"discovery_url,omitempty"`
	RegistrationEndpoint string `json:"registration_endpoint,omitempty"`
	RotationKey          string `json:"rotation_key,omitempty"`
	RegistrationProbe    string `json:"registration_probe,omitempty"`
	// RegistrationProbeInterval is a duration as Go writes it.
	RegistrationProbeInterval string `json:"registration_probe_interval,omitempty"`
	InitialAccessTokenEnvVar  string `json:"initial_access_token_env_var,omitempty"`
	SoftwareID                string `json:"software_id,omitempty"`
	SoftwareStatement         string `json:"software_statement,omitempty"`
}

// TokenResponseMapping are paths into a token response that is not standard.
type TokenResponseMapping struct {
	AccessTokenPath  string `json:"access_token_path"`
	ScopePath        string `json:"scope_path,omitempty"`
	RefreshTokenPath string `json:"refresh_token_path,omitempty"`
	ExpiresInPath    string `json:"expires_in_path,omitempty"`
}

// IdentityFromToken are paths of the user's identity in the token response.
type IdentityFromToken struct {
	SubjectPath string `json:"subject_path"`
	NamePath    string `json:"name_path,omitempty"`
	EmailPath   string `json:"email_path,omitempty"`
}

// UserInfo is the endpoint that identifies the user to the runner.
type UserInfo struct {
	EndpointURL       string                `json:"endpoint_url"`
	HTTPMethod        string                `json:"http_method,omitempty"`
	AdditionalHeaders map[string]string     `json:"additional_headers,omitempty"`
	FieldMapping      *UserInfoFieldMapping `json:"field_mapping,omitempty"`
}

// UserInfoFieldMapping are names of fields of the answer, each list in the order in which they are tried.
type UserInfoFieldMapping struct {
	SubjectFields []string `json:"subject_fields,omitempty"`
	NameFields    []string `json:"name_fields,omitempty"`
	EmailFields   []string `json:"email_fields,omitempty"`
}

// CIMD makes the runner accept URLs of metadata documents as client identifiers.
type CIMD struct {
	Enabled          bool   `json:"enabled"`
	CacheMaxSize     int    `json:"cache_max_size,omitempty"`
	CacheFallbackTTL string `json:"cache_fallback_ttl,omitempty"`
}

// TLSListener are the files of the second listener, on TLSListenerPort.
type TLSListener struct {
	CertFile string `json:"cert_file"`
	KeyFile  string `json:"key_file"`
}

// RegistrationRateLimit bounds /oauth/register of each replica.
type RegistrationRateLimit struct {
	RequestsPerSecond float64 `json:"requests_per_second"`
	Burst             int     `json:"burst"`
}

// Storage is where the runner keeps clients and tokens; without it, in its memory.
type Storage struct {
	Type          string `json:"type,omitempty"`
	Redis         *Redis `json:"redis_config,omitempty"`
	MaxDCRClients *int   `json:"max_dcr_clients,omitempty"`
}

// Redis is reached at an address or through sentinels. Timeouts are durations as Go writes them.
type Redis struct {
	Addr         string     `json:"addr,omitempty"`
	ClusterMode  bool       `json:"cluster_mode,omitempty"`
	Sentinel     *Sentinel  `json:"sentinel_config,omitempty"`
	AuthType     string     `json:"auth_type"`
	ACLUser      *RedisUser `json:"acl_user_config,omitempty"`
	KeyPrefix    string     `json:"key_prefix"`
	DialTimeout  string     `json:"dial_timeout,omitempty"`
	ReadTimeout  string     `json:"read_timeout,omitempty"`
	WriteTimeout string     `json:"write_timeout,omitempty"`
	TLS          *RedisTLS  `json:"tls,omitempty"`
	SentinelTLS  *RedisTLS  `json:"sentinel_tls,omitempty"`
}

// Sentinel names the sentinels as host:port.
type Sentinel struct {
	MasterName    string   `json:"master_name"`
	SentinelAddrs []string `json:"sentinel_addrs"`
	DB            int      `json:"db,omitempty"`
}

// RedisUser names the environment variables with the credentials; the first is empty without a user name.
type RedisUser struct {
	UsernameEnvVar string `json:"username_env_var"`
	PasswordEnvVar string `json:"password_env_var"`
}

// RedisTLS turns TLS on by its presence.
type RedisTLS struct {
	InsecureSkipVerify bool   `json:"insecure_skip_verify,omitempty"`
	CACertFile         string `json:"ca_cert_file,omitempty"`
}
