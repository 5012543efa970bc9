// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

// OIDC says which tokens the proxy accepts. Without it the proxyrunner accepts every client. Keys are the names of the
// fields: ToolHive's struct has no JSON names for them.
type OIDC struct {
	Issuer   string
	Audience string
	// JWKSURL is where the keys are; empty for where the issuer says.
	JWKSURL  string
	ClientID string
	// ClientSecret is always empty: the proxyrunner has it from a variable.
	ClientSecret string
	// CACertPath and AuthTokenFile are files in the proxy's container; empty for none.
	CACertPath, AuthTokenFile string
	AllowPrivateIP            bool
	InsecureAllowHTTP         bool
	IntrospectionURL          string
	// ResourceURL is the URL that the proxy announces as its own.
	ResourceURL string
	// Scopes that the proxy announces; nil, which is written as null, for the runner's default.
	Scopes []string
}

// TokenExchange makes the proxy exchange the token of each request for one that the backend accepts.
type TokenExchange struct {
	TokenURL string `json:"token_url"`
	ClientID string `json:"client_id"`
	// ClientSecret is always empty: the proxyrunner has it from a variable.
	ClientSecret string   `json:"client_secret"`
	Audience     string   `json:"audience"`
	Scopes       []string `json:"scopes,omitempty"`
	// SubjectTokenType is a URN; empty for that of access tokens.
	SubjectTokenType string `json:"subject_token_type,omitempty"`
	// HeaderStrategy is HeaderReplace or HeaderCustom.
	HeaderStrategy          string `json:"header_strategy,omitempty"`
	ExternalTokenHeaderName string `json:"external_token_header_name,omitempty"`
}

// Where the proxy puts the token that it was given in exchange.
const (
	// HeaderReplace puts it into the header Authorization.
	HeaderReplace = "replace"
	// HeaderCustom puts it into TokenExchange.ExternalTokenHeaderName.
	HeaderCustom = "custom"
)

// Telemetry is what the proxy reports about itself, and where to.
type Telemetry struct {
	// Endpoint as host, port and path, without a scheme.
	Endpoint       string `json:"endpoint,omitempty"`
	ServiceName    string `json:"serviceName,omitempty"`
	TracingEnabled bool   `json:"tracingEnabled"`
	MetricsEnabled bool   `json:"metricsEnabled"`
	// SamplingRate is between 0 and 1, as a decimal number.
	SamplingRate string `json:"samplingRate,omitempty"`
	// Headers are sent with each export. They replace those of the variable OTEL_EXPORTER_OTLP_HEADERS.
	Headers  map[string]string `json:"headers,omitempty"`
	Insecure bool              `json:"insecure,omitempty"`
	// EnablePrometheusMetricsPath serves /metrics.
	EnablePrometheusMetricsPath bool `json:"enablePrometheusMetricsPath,omitempty"`
	// MetricsOnTransportPort serves them on the proxy's own port as well; nil for the runner's default, which is yes.
	MetricsOnTransportPort *bool             `json:"metricsOnTransportPort,omitempty"`
	CustomAttributes       map[string]string `json:"customAttributes,omitempty"`
	UseLegacyAttributes    bool              `json:"useLegacyAttributes"`
	// CACertPath is a file in the proxy's container.
	CACertPath string `json:"caCertPath,omitempty"`
}

// ToolOverride is a tool's name and description for clients. Empty fields leave it as it is.
type ToolOverride struct {
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
}

// Webhook is called with each request.
type Webhook struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// Timeout in nanoseconds; 0 for the runner's default of 10 seconds.
	Timeout int64 `json:"timeout"`
	// FailurePolicy is fail or ignore.
	FailurePolicy string      `json:"failure_policy"`
	TLS           *WebhookTLS `json:"tls_config,omitempty"`
	// HMACSecretRef is a file in the proxy's container; empty for requests that are not signed.
	HMACSecretRef string `json:"hmac_secret_ref,omitempty"`
}

// WebhookTLS is how the proxy speaks TLS with a webhook. Paths are those of files in the proxy's container.
type WebhookTLS struct {
	CABundlePath       string `json:"ca_bundle_path,omitempty"`
	ClientCertPath     string `json:"client_cert_path,omitempty"`
	ClientKeyPath      string `json:"client_key_path,omitempty"`
	InsecureSkipVerify bool   `json:"insecure_skip_verify,omitempty"`
}
