// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/freehold-dev/freehold/apis/toolhive/v1alpha1"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1alpha1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1alpha1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
)

var webhookKind = kind(
	Kind{Name: Webhook, Valid: v1beta1.ReasonValidationSucceeded, Invalid: v1beta1.ReasonValidationFailed}, toolhivev1alpha1ac.MCPWebhookConfig,
	func(c *v1alpha1.MCPWebhookConfig) *v1beta1.MCPWebhookConfigSpec { return &c.Spec }, func(c *v1alpha1.MCPWebhookConfig) *v1beta1.ConfigStatus { return &c.Status },
	ValidateWebhook, none,
)

// WebhookConfigRef is spec.webhookConfigRef.
var WebhookConfigRef = refer(webhookKind, Reference{
	Field: "webhookConfigRef", Condition: v1beta1.ConditionWebhookConfigValidated,
	Valid: v1beta1.ReasonWebhookConfigValid, NotFound: v1beta1.ReasonWebhookConfigNotFound,
	Invalid: v1beta1.ReasonWebhookConfigInvalid, Unavailable: v1beta1.ReasonWebhookConfigError,
	Hash:     func(s *v1beta1.MCPServerStatus) *string { return &s.WebhookConfigHash },
	WithHash: (*toolhivev1beta1ac.MCPServerStatusApplyConfiguration).WithWebhookConfigHash,
}, func(s *v1beta1.MCPServerSpec) **v1beta1.WebhookConfigRef { return &s.WebhookConfigRef },
	func(ref *v1beta1.WebhookConfigRef) Named { return Named{Webhook, ref.Name} })

// How long the proxyrunner may be configured to wait for a webhook.
const (
	minWebhookTimeout = time.Second
	maxWebhookTimeout = 30 * time.Second
)

// ValidateWebhook returns why an MCPWebhookConfig cannot be used; nil when it can.
func ValidateWebhook(spec *v1beta1.MCPWebhookConfigSpec) error {
	if err := readable(spec.UnknownFields, spec.Malformed); err != nil {
		return err
	}
	if len(spec.Validating)+len(spec.Mutating) == 0 {
		return errors.New("spec has no webhook, neither validating nor mutating")
	}
	for _, list := range []struct {
		field    string
		webhooks []v1beta1.WebhookSpec
	}{{"spec.validating", spec.Validating}, {"spec.mutating", spec.Mutating}} {
		for i := range list.webhooks {
			if err := validateWebhook(fmt.Sprintf("%s[%d]", list.field, i), &list.webhooks[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func validateWebhook(field string, webhook *v1beta1.WebhookSpec) error {
	if webhook.Name == "" {
		return fmt.Errorf("%s.name is missing", field)
	}
	address, err := url.ParseRequestURI(webhook.URL)
	tls := webhook.TLSConfig
	switch {
	case err != nil:
		return fmt.Errorf("%s.url is not a URL", field)
	case address.Scheme != "https" && (tls == nil || !tls.InsecureSkipVerify):
		return fmt.Errorf("%s.url has the scheme %q; use https, or set tlsConfig.insecureSkipVerify for tests", field, address.Scheme)
	case address.Scheme != "https" && address.Scheme != "http":
		return fmt.Errorf("%s.url has the scheme %q, which the proxy does not speak; use https", field, address.Scheme)
	case address.Host == "":
		return fmt.Errorf("%s.url has no host", field)
	}
	switch webhook.FailurePolicy {
	case "", v1beta1.WebhookFailurePolicyFail, v1beta1.WebhookFailurePolicyIgnore:
	default:
		return fmt.Errorf("%s.failurePolicy is %q; it must be fail or ignore", field, webhook.FailurePolicy)
	}
	if _, err := WebhookTimeout(webhook); err != nil {
		return fmt.Errorf("%s.%w", field, err)
	}
	if ref := webhook.HMACSecretRef; ref != nil {
		if err := validateSecretKey(field+".hmacSecretRef", ref); err != nil {
			return err
		}
	}
	return validateWebhookTLS(field+".tlsConfig", tls)
}

func validateWebhookTLS(field string, tls *v1beta1.WebhookTLSConfig) error {
	if tls == nil {
		return nil
	}
	if (tls.ClientCertSecretRef == nil) != (tls.ClientKeySecretRef == nil) {
		return fmt.Errorf("%s has only one of clientCertSecretRef and clientKeySecretRef; without both the proxy would not "+
			"authenticate itself", field)
	}
	for _, secret := range []struct {
		name string
		ref  *v1beta1.SecretKeyRef
	}{
		{"caSecretRef", tls.CASecretRef}, {"clientCertSecretRef", tls.ClientCertSecretRef}, {"clientKeySecretRef", tls.ClientKeySecretRef},
	} {
		if secret.ref != nil {
			if err := validateSecretKey(field+"."+secret.name, secret.ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// WebhookTimeout returns how long the proxy waits for a webhook; 0 for the proxyrunner's default.
func WebhookTimeout(webhook *v1beta1.WebhookSpec) (time.Duration, error) {
	if webhook.Timeout == "" {
		return 0, nil
	}
	timeout, err := time.ParseDuration(webhook.Timeout)
	if err != nil {
		return 0, fmt.Errorf("timeout %q is not a duration, such as 5s", webhook.Timeout)
	}
	if timeout != 0 && (timeout < minWebhookTimeout || timeout > maxWebhookTimeout) {
		return 0, fmt.Errorf("timeout is %s; it must be between %s and %s", timeout, minWebhookTimeout, maxWebhookTimeout)
	}
	return timeout, nil
}
