// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// MCPWebhookConfigSpec is a list of webhooks.
//
// +kubebuilder:validation:XValidation:rule="(has(self.validating) ? size(self.validating) : 0) + (has(self.mutating) ? size(self.mutating) : 0) > 0",message="at least one validating or mutating webhook must be defined"
type MCPWebhookConfigSpec struct {
	// validating webhooks allow or deny a request.
	// +optional
	Validating []WebhookSpec `json:"validating,omitempty"`
	// mutating webhooks change a request. The proxy calls them first.
	// +optional
	Mutating []WebhookSpec `json:"mutating,omitempty"`

	// UnknownFields are the paths, below spec, of fields that this type does not have or that were given twice.
	// UnmarshalJSON sets it; it is not part of the API.
	// +listType=atomic
	UnknownFields []string `json:"-"`

	// Malformed names the value of the spec that could not be read into this type; it is empty for none. UnmarshalJSON sets
	// it; it is not part of the API.
	Malformed string `json:"-"`
}

// WebhookFailurePolicy says how the proxy treats a request when the webhook does not answer.
type WebhookFailurePolicy string

const (
	// WebhookFailurePolicyFail denies the request.
	WebhookFailurePolicyFail WebhookFailurePolicy = "fail"
	// WebhookFailurePolicyIgnore lets the request pass.
	WebhookFailurePolicyIgnore WebhookFailurePolicy = "ignore"
)

// WebhookSpec is one webhook.
type WebhookSpec struct {
	// name of the webhook, for logs.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// url is where the webhook is called. It is https unless tlsConfig has insecureSkipVerify.
	// +kubebuilder:validation:Format=uri
	// +required
	URL string `json:"url"`
	// timeout is how long the proxy waits for an answer, from 1s to 30s; 10 seconds when unset. It is a string here,
	// since the API server also accepts durations that Go does not parse, such as 2d, and one bad value must not make a
	// whole list undecodable.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +optional
	Timeout string `json:"timeout,omitempty"`
	// failurePolicy says how the proxy treats a request when the webhook does not answer: fail denies the request, ignore
	// lets it pass. The proxy denies a request in any case if it cannot make the call, such as without the key for its
	// signature; with ignore, proxyrunners before v0.63.0 let it pass.
	// +kubebuilder:validation:Enum=fail;ignore
	// +kubebuilder:default=fail
	// +optional
	FailurePolicy WebhookFailurePolicy `json:"failurePolicy,omitempty"`
	// tlsConfig is how the two sides authenticate each other.
	// +optional
	TLSConfig *WebhookTLSConfig `json:"tlsConfig,omitempty"`
	// hmacSecretRef is the key of a Secret with which the proxy signs what it sends.
	// +optional
	HMACSecretRef *SecretKeyRef `json:"hmacSecretRef,omitempty"`
}

// WebhookTLSConfig is how the proxy and a webhook authenticate each other.
type WebhookTLSConfig struct {
	// caSecretRef is the key of a Secret that holds the certificates, in PEM, of the authorities to trust.
	// +optional
	CASecretRef *SecretKeyRef `json:"caSecretRef,omitempty"`
	// clientCertSecretRef is the key of a Secret that holds the proxy's certificate, in PEM. It needs clientKeySecretRef.
	// +optional
	ClientCertSecretRef *SecretKeyRef `json:"clientCertSecretRef,omitempty"`
	// clientKeySecretRef is the key of a Secret that holds the private key of the proxy's certificate, in PEM.
	// +optional
	ClientKeySecretRef *SecretKeyRef `json:"clientKeySecretRef,omitempty"`
	// insecureSkipVerify turns the check of the webhook's certificate off. It is for tests.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}
